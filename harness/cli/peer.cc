// attnbench peer: one side of scripts/peers. Holds one attention or one model and answers each JSON
// request, a line on stdin, with a JSON line on stdout, so that it can be timed in turns with the
// process of another library. Not for people; a request that fails is answered with {"error"}.
#include <chrono>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/memory.h"
#include "core/base/parallel.h"
#include "harness/cli/peer_request.h"
#include "harness/cli/peer_sides.h"
#include "harness/cli/terminal.h"
#include "harness/cli/verbs.h"
#include "harness/measure/calibrate.h"
#include "harness/run/run_line.h"
#include "harness/store/parse.h"
#include "variants/catalog.h"

namespace attn::cli {
namespace {

// Seconds of each call.
std::vector<double> timed(const PeerRequest& request, const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  for (int64_t i = 0; i < request.warm; i++) call();
  std::vector<double> seconds;
  for (int64_t i = 0; i < request.repeat.value_or(1); i++) {
    const Clock::time_point start = Clock::now();
    call();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  return seconds;
}

class Peer {
 public:
  Json answer(const Json& line) {
    const auto request = read_json<PeerRequest>(line);
    const std::string& what = request.what;
    if (what == "hello") return hello();
    if (what == "peak") return peak(request);
    if (what == "attention" || what == "cache" || what == "model") return load(request, line);
    if (what == "step") {
      ATTN_CHECK(model_, "'step' before 'model'");
      Json losses = Json::array();
      const auto seconds =
          timed(request, [&] { losses.push_back(finite_or_null(model_->step())); });
      return {{"seconds", seconds}, {"losses", std::move(losses)}};
    }
    ATTN_CHECK(what != "write" || request.folder, "folder: missing");
    if (what == "write" && model_) {
      model_->write(*request.folder);
      return Json::object();
    }
    if (what == "write" && cache_) {
      cache_->write(*request.folder);
      return Json::object();
    }
    if (what == "decode") {
      ATTN_CHECK(cache_, "'decode' before 'cache'");
      return {{"seconds", timed(request, [&] { cache_->decode(); })}};
    }
    ATTN_CHECK(attention_, "'{}' before 'attention'", what);
    if (what == "forward") return {{"seconds", timed(request, [&] { attention_->forward(); })}};
    if (what == "train") return {{"seconds", timed(request, [&] { attention_->train(); })}};
    ATTN_CHECK(what == "write", "unknown request '{}'", what);
    attention_->write(*request.folder);
    return Json::object();
  }

 private:
  static Json hello() {
    Json names = Json::array();
    for (const VariantInfo& info : all_variants()) names.push_back(info.name);
    return {{"environment", environment_json()},
            {"variants", std::move(names)},
            {"version", ATTN_VERSION}};
  }

  // The FMA peak of so many threads, the measure of everybody's FLOPs.
  static Json peak(const PeerRequest& request) {
    ATTN_CHECK(request.threads, "threads: missing");
    return {{"fma_flops_per_s", calibrate(*request.threads).fma_flops_per_s_all}};
  }

  // What was held before is given back first: the largest cases fill the memory.
  Json load(const PeerRequest& request, const Json& line) {
    attention_.reset();
    cache_.reset();
    model_.reset();
    release_free_memory();
    ATTN_CHECK(request.threads, "threads: missing");
    set_threads(*request.threads);
    if (request.what == "model") {
      model_ = std::make_unique<ModelSide>(line);
      return Json::object();
    }
    if (request.what == "cache") {
      cache_ = std::make_unique<CacheSide>(line);
      return {{"flops", cache_->flops()}};
    }
    attention_ = std::make_unique<AttentionSide>(line);
    return {{"flops", attention_->flops()}};
  }

  std::unique_ptr<AttentionSide> attention_;
  std::unique_ptr<CacheSide> cache_;
  std::unique_ptr<ModelSide> model_;
};

}  // namespace

int run_peer_process() {
  Peer peer;
  std::string line;
  while (std::getline(std::cin, line)) {
    Json reply;
    try {
      const Parsed request = parse_json(line);
      ATTN_CHECK(request.fault.empty(), "the request is {}", request.fault);
      reply = peer.answer(request.value);
    } catch (const std::exception& error) {
      reply = {{"error", error.what()}};
    }
    print(reply.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  }
  return kOk;
}

}  // namespace attn::cli
