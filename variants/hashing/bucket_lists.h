// Queries and keys of one head by bucket of a sign hash, one hash after the other. A counting sort
// a hash. Internal.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/marks.h"
#include "core/base/memory.h"
#include "variants/hashing/counting_sort.h"
#include "variants/hashing/sign_codes.h"

namespace attn {

struct Bucket {  // positions, ascending
  const int32_t *queries, *keys;
  int64_t query_count, key_count;
};

class BucketLists {
 public:
  static int64_t room_reals(int64_t q_len, int64_t kv_len, int64_t dim, int64_t bits) {
    return SignHashes::room_reals(dim) + side_reals(q_len, bits) + side_reals(kv_len, bits);
  }
  // Reads the first `valid` keys alone; `work` holds room_reals() numbers for at least so many.
  BucketLists(const SignHashes& hashes, const real* q, int64_t q_len, const real* k, int64_t valid,
              real* work)
      : hashes_(hashes), room_(work), queries_{q, q_len}, keys_{k, valid} {
    work += SignHashes::room_reals(hashes.dim);
    work = queries_.take(work, hashes.bits);
    keys_.take(work, hashes.bits);
  }

  // Calls must come in order, from hash 0 on.
  void sort(int64_t hash) {
    const int64_t group = SignHashes::together(hashes_.bits), within = hash % group;
    if (within == 0) {
      const SignHashes some = hashes_.part(hash, std::min(group, hashes_.hashes - hash));
      some.group_codes(queries_.len, queries_.x, room_, queries_.codes, queries_.len);
      some.group_codes(keys_.len, keys_.x, room_, keys_.codes, keys_.len);
    }
    const Mark mark(Part::sorting);
    queries_.sort(within, hashes_.buckets());
    keys_.sort(within, hashes_.buckets());
  }
  Bucket bucket(int64_t code) const {
    const int32_t *const q = queries_.begin + code, *const k = keys_.begin + code;
    return {queries_.order + q[0], keys_.order + k[0], q[1] - q[0], k[1] - k[0]};
  }

 private:
  struct Side {
    const real* x;
    int64_t len;
    int32_t *codes = nullptr, *order = nullptr, *begin = nullptr;  // [together, len], [len], …

    real* take(real* work, int64_t bits) {
      codes = reinterpret_cast<int32_t*>(work);
      order = codes + SignHashes::together(bits) * len;
      begin = order + len;
      return work + side_reals(len, bits);
    }
    void sort(int64_t which, int64_t buckets) const {
      counting_sort(len, codes + which * len, buckets, begin, order);
    }
  };
  static int64_t side_reals(int64_t len, int64_t bits) {
    const int64_t ints = (SignHashes::together(bits) + 1) * len + (int64_t{1} << bits) + 1;
    constexpr auto kIntsOfReal = static_cast<int64_t>(sizeof(real) / sizeof(int32_t));
    return padded_reals((ints + kIntsOfReal - 1) / kIntsOfReal);
  }

  SignHashes hashes_;
  real* room_;
  Side queries_, keys_;
};

}  // namespace attn
