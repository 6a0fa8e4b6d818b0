// Caches of fewer bits as in a textbook, right and with one fault at a time: what the check
// `kv_dtype` must catch.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/bfloat16.h"
#include "harness/check/contract.h"
#include "variants/catalog.h"
#include "variants/softmax/softmax.h"

namespace attn::planted_caches_test {
namespace {

enum class Fault {
  none,
  scale_over_128,       // the scale is the largest number over one more than the largest integer
  scale_of_float32,     // the scale is not rounded to bfloat16
  next_scale,           // a block takes the scale of the block after it
  scales_of_keys,       // values are given back with the scales of keys
  swapped_halves,       // of a byte with two integers: channels c and c + 16 change places
  rounded_down,         // to the integer below
  last_block_lost,      // of a width that is no multiple of 32, the last block
  no_recent,            // the newest positions are rounded too
  recent_one_short,     // 31 of them are held
  stale_recent,         // a step in place of one that was taken back finds its numbers
  prefill_not_recent,   // what was appended at once is rounded, however new
  ring_of_33,           // the newest positions lie in a ring of one place more than is read
  values_in_keys_type,  // of keys and values of two types
  tiled_heads           // head h of the queries uses head h % kv_heads of the keys
};

int largest_of(CacheNumber number) { return number == CacheNumber::int8 ? 127 : 7; }

class PlantedCache final : public Decoder {
 public:
  PlantedCache(const Shape& position, int64_t capacity, CacheType type, Fault fault)
      : Decoder(position, capacity),
        type_(type),
        fault_(fault),
        batch_(position[0]),
        rows_(size_t(heads())) {}

 private:
  struct Row {
    std::vector<real> key, value;  // as given
    bool is_stepped = false;
  };

  std::vector<double> scales(const std::vector<real>& x, CacheNumber number) const {
    std::vector<double> all;
    for (size_t first = 0; first < x.size(); first += 32) {
      float most = 0;
      for (size_t c = first; c < std::min(x.size(), first + 32); ++c)
        most = std::max(most, std::abs(float(x[c])));
      const float scale =
          most / float(largest_of(number) + (fault_ == Fault::scale_over_128 ? 1 : 0));
      all.push_back(
          double(fault_ == Fault::scale_of_float32 ? scale : to_float(to_bfloat16(scale))));
    }
    return all;
  }
  std::vector<double> given_back(const std::vector<real>& x, CacheNumber number,
                                 const std::vector<double>* other) const {
    std::vector<double> row(x.size());
    const std::vector<double> own = is_integer(number) ? scales(x, number) : row;
    for (size_t c = 0; c < x.size(); ++c) {
      if (number == CacheNumber::float32) row[c] = double(x[c]);
      if (number == CacheNumber::bfloat16) row[c] = double(to_float(to_bfloat16(float(x[c]))));
      if (!is_integer(number)) continue;
      const size_t block = c / 32, blocks = own.size();
      const double limit = largest_of(number),
                   ratio = own[block] > 0 ? double(x[c]) / own[block] : 0;
      double integer = fault_ == Fault::rounded_down ? std::floor(ratio) : std::nearbyint(ratio);
      integer = std::clamp(integer, -limit, limit);
      double scale = fault_ == Fault::next_scale ? own[(block + 1) % blocks] : own[block];
      if (other && fault_ == Fault::scales_of_keys) scale = (*other)[block];
      if (fault_ == Fault::last_block_lost && x.size() % 32 != 0 && block + 1 == blocks) scale = 0;
      row[c] = integer * scale;
    }
    if (fault_ == Fault::swapped_halves && number == CacheNumber::int4)
      for (size_t c = 0; c + 16 < row.size(); c += c % 32 == 15 ? 17 : 1)
        std::swap(row[c], row[c + 16]);
    return row;
  }
  bool is_recent(const Row& row, int64_t age) const {
    if (!keeps_recent(type_) || fault_ == Fault::no_recent) return false;
    if (fault_ == Fault::prefill_not_recent && !row.is_stepped) return false;
    return age < kRecentPositions - (fault_ == Fault::recent_one_short ? 1 : 0);
  }

  void put(int64_t head, int64_t at, const real* k, const real* v, bool is_stepped) {
    auto& rows = rows_[size_t(head)];
    rows.resize(size_t(std::max<int64_t>(std::ssize(rows), at + 1)));
    const Row written{{k, k + head_dim()}, {v, v + head_dim()}, is_stepped};
    if (fault_ == Fault::stale_recent && !rows[size_t(at)].key.empty()) {
      before_ = rows[size_t(at)];
      stale_at_ = at;
    }
    rows[size_t(at)] = written;
  }
  void do_extend(const Tensor& k, const Tensor& v) override {
    for (int64_t head = 0; head < heads(); ++head)
      for (int64_t i = 0; i < k.dim(2); ++i) {
        const int64_t at = (head * k.dim(2) + i) * head_dim();
        put(head, length() + i, k.data() + at, v.data() + at, false);
      }
  }
  void do_step(const real* q, const real* k, const real* v, real* out) override {
    const int64_t dim = head_dim();
    for (int64_t head = 0; head < heads(); ++head)
      put(head, length(), k + head * dim, v + head * dim, true);
    for (int64_t query = 0; query < heads() * group(); ++query) {
      const int64_t kept = heads() / batch_;
      const int64_t of_batch = query / (kept * group()), inside = query % (kept * group());
      const int64_t head =
          of_batch * kept + (fault_ == Fault::tiled_heads ? inside % kept : inside / group());
      answer(rows_[size_t(head)], q + query * dim, out + query * dim);
    }
  }

  void answer(const std::vector<Row>& rows, const real* q, real* out) const {
    const int64_t dim = head_dim(), n = length() + 1;
    std::vector<double> logits, sum(size_t(dim), 0.0);
    std::vector<std::vector<double>> values;
    for (int64_t j = 0; j < n; ++j) {
      Row row = rows[size_t(j)];
      const int64_t age = n - 1 - j;
      if (fault_ == Fault::stale_recent && stale_at_ == j && age == 0) row = before_;
      if (fault_ == Fault::ring_of_33 && n > 33 && age == 5) row = rows[size_t(j - 1)];
      std::vector<double> key(row.key.begin(), row.key.end()),
          value(row.value.begin(), row.value.end());
      if (!is_recent(row, age)) {
        const CacheNumber of_values =
            fault_ == Fault::values_in_keys_type ? keys_of(type_) : values_of(type_);
        const std::vector<double> of_keys =
            is_integer(keys_of(type_)) ? scales(row.key, keys_of(type_)) : std::vector<double>();
        key = given_back(row.key, keys_of(type_), nullptr);
        value = given_back(row.value, of_values, of_keys.empty() ? nullptr : &of_keys);
      }
      double logit = 0;
      for (size_t c = 0; c < key.size(); ++c) logit += double(q[c]) * key[c];
      logits.push_back(logit / std::sqrt(double(dim)));
      values.push_back(std::move(value));
    }
    const double most = *std::max_element(logits.begin(), logits.end());
    double total = 0;
    for (size_t j = 0; j < logits.size(); ++j) {
      const double weight = std::exp(logits[j] - most);
      total += weight;
      for (size_t c = 0; c < sum.size(); ++c) sum[c] += weight * values[j][c];
    }
    for (size_t c = 0; c < sum.size(); ++c) out[c] = static_cast<real>(sum[c] / total);
  }

  int64_t do_state_bytes() const override {
    return typed_cache_bytes(type_, heads(), capacity(), head_dim());
  }
  double do_step_flops() const override { return 0; }
  double do_step_bytes() const override { return 0; }

  CacheType type_;
  Fault fault_;
  int64_t batch_;
  std::vector<std::vector<Row>> rows_;
  Row before_;
  int64_t stale_at_ = -1;
};

class Planted final : public Attention {
 public:
  Planted(const AttentionConfig& config, Fault fault) : Attention(config), fault_(fault) {}

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    return softmax_attention(q, k, v, {.causal = mask.causal, .kv_lengths = mask.kv_lengths});
  }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return softmax_decoder(position, capacity);
  }
  std::unique_ptr<Decoder> do_cached_decoder(const Shape& position, int64_t capacity,
                                             CacheType cache) const override {
    return std::make_unique<PlantedCache>(position, capacity, cache, fault_);
  }

  Fault fault_;
};

VariantInfo planted(Fault fault) {
  return {.name = "planted",
          .family = "exact",
          .traits = {.causal = true, .decode = true, .typed_cache = true},
          .make = [fault](const AttentionConfig& c) { return std::make_unique<Planted>(c, fault); },
          .reference =
              [](const ReferenceInputs& x) {
                return oracle::softmax_attention(x.q, x.k, x.v, x.visible());
              }};
}

attn_check::Result checked(Fault fault) {
  const auto results = check_variant(planted(fault), {}, attn_check::Level::quick, "kv_dtype");
  EXPECT_EQ(results.size(), 1U);
  return results.at(0);
}

TEST(PlantedCaches, TheTextbookPasses) {
  const auto result = checked(Fault::none);
  EXPECT_EQ(result.outcome, attn_check::Outcome::passed) << result.detail;
}

TEST(PlantedCaches, EachFaultIsCaught) {
  for (int fault = 1; fault <= static_cast<int>(Fault::tiled_heads); ++fault) {
    const auto result = checked(static_cast<Fault>(fault));
    EXPECT_EQ(result.outcome, attn_check::Outcome::failed) << fault << ": " << result.detail;
    EXPECT_EQ(result.detail.find("threw"), std::string::npos) << fault << ": " << result.detail;
  }
}

// Of a sweep with a cache, the shape is checked with it.
TEST(PlantedCaches, AreCaughtAtAPublishedShape) {
  const AttentionShape shape{.heads = 8, .head_dim = 64, .causal = true, .cache = CacheType::int8};
  const auto right = check_variant_at(planted(Fault::none), {}, shape, 1, 2),
             wrong = check_variant_at(planted(Fault::no_recent), {}, shape, 1, 2);
  ASSERT_EQ(right.size(), 1U) << "the check of caches alone";
  EXPECT_EQ(right[0].outcome, attn_check::Outcome::passed) << right[0].detail;
  EXPECT_EQ(wrong.at(0).outcome, attn_check::Outcome::failed);
}

// A ring of one position less than the window: it answers as it should until it wraps.
class ShortRing final : public Attention {
 public:
  explicit ShortRing(const AttentionConfig& config)
      : Attention(config), window_(config.params.integer("window")) {}

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    return softmax_attention(q, k, v, {.causal = mask.causal, .window = window_});
  }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return softmax_decoder(position, capacity, window_);
  }
  std::unique_ptr<Decoder> do_cached_decoder(const Shape& position, int64_t capacity,
                                             CacheType cache) const override {
    return typed_softmax_decoder(position, capacity, cache, {.window = window_ - 1});
  }

  int64_t window_;
};

TEST(PlantedCaches, ARingIsCheckedPastItsWindow) {
  const AttentionShape shape{.heads = 2, .head_dim = 32, .causal = true, .cache = CacheType::int8};
  VariantInfo info = find_variant("truncated");
  for (const int64_t window : {64, 1023}) {
    const auto right = check_variant_at(info, {{"window", window}}, shape, 1, 2);
    EXPECT_EQ(right.at(0).outcome, attn_check::Outcome::passed) << right.at(0).detail;
    VariantInfo wrong = info;
    wrong.make = make_as<ShortRing>;
    const auto caught = check_variant_at(wrong, {{"window", window}}, shape, 1, 2).at(0);
    EXPECT_EQ(caught.outcome, attn_check::Outcome::failed) << window;
    EXPECT_NE(caught.detail.find("is off by"), std::string::npos) << caught.detail;
  }
}

TEST(PlantedCaches, NoOtherTypeWithoutTheTrait) {
  const Planted attention({.heads = 2, .head_dim = 4, .max_len = 8, .causal = true, .params = {}},
                          Fault::none);
  EXPECT_THROW(attention.decoder(1, 8, 0, Dtype::float32, CacheType::int8), Error);
}

}  // namespace
}  // namespace attn::planted_caches_test
