// A sweep with a shell script in place of `attnbench cell`: fast, and told cell by cell what to do.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "harness/cell/codec.h"
#include "harness/plan/plan.h"
#include "harness/run/run.h"

namespace attn {

// As they stand in the file.
inline std::vector<Json> lines(const SweepResult& result) {
  std::vector<Json> all;
  for (const Row& row : result.rows) all.push_back(to_json(row));
  return all;
}

class FakeSweep : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "sweep." + std::to_string(getpid()) + "." +
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    request_.output = folder_ + "/rows.jsonl";
    request_.program = folder_ + "/fake";
    request_.argv = {"run"};
    request_.jobs = 2;
    request_.timeout_s = 20;
    behave("");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // `cases` are shell patterns over the request, such as: *linear*) exit 3;; They come before the
  // ordinary answers.
  void behave(const std::string& cases) {
    std::ofstream(request_.program)
        << "#!/bin/sh\nread -r request\necho \"$request\" >>" << log() << "\n"
        << "case \"$request\" in\n"
        << cases << R"(
*'"do":"calibrate"'*) echo '{"status":"ok","reason":null,"calibration":{"fma_flops_per_s_one":1e12,)"
        << R"("fma_flops_per_s_all":2e12,"copy_bytes_per_s_one":8e9,"copy_bytes_per_s":1e10,"threads":2}}';;
*'"do":"check"'*) echo '{"status":"ok","reason":null,"red":null,"detail":""}';;
*'"measure":"speed"'*) echo '{"status":"ok","reason":null,"samples":[0.5,0.25],"flops":1000}';;
*'"measure":"memory"'*) echo '{"status":"ok","reason":null,"samples":null,"metrics":{"peak_bytes":1,"weights_bytes":1,)"
        << R"("activations_bytes":1,"workspace_bytes":1,"state_bytes":1,"rss_peak_bytes":1}}';;
*) echo '{"status":"ok","reason":null,"samples":null,"metrics":{"relative_error":0,"cosine":1,"weights_kl":null}}';;
esac
)";
    chmod(request_.program.c_str(), 0755);
  }

  SweepResult sweep(const std::function<void(const Progress&)>& report = {}) {
    return run_sweep(request_, plan(request_), report);
  }

  std::string log() const { return folder_ + "/log"; }
  std::vector<Json> requests(
      const std::string& what) const {  // those that the fake was given, in order
    std::vector<Json> found;
    std::ifstream file(log());
    for (std::string line; std::getline(file, line);)
      if (Json request = Json::parse(line); request["do"] == what) found.push_back(request);
    return found;
  }

  std::string folder_;
  SweepRequest request_;
};

}  // namespace attn
