// What scripts/peers asks of `attnbench peer`, a JSON object a line.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "harness/store/fields.h"

namespace attn::cli {

// What all requests share.
struct PeerRequest {
  std::string what;
  std::optional<int64_t> repeat;  // timed calls
  int64_t warm = 0;               // calls before that are not timed
  std::optional<int> threads;
  std::optional<std::string> folder;  // for what `write` writes
};

template <class Archive>
void fields(Archive& archive, PeerRequest& request) {
  archive("do", request.what);
  archive.maybe("repeat", request.repeat);
  archive.maybe("warm", request.warm);
  archive.maybe("threads", request.threads);
  archive.maybe("folder", request.folder);
}

// Loads an attention.
struct AttentionRequest {
  std::string variant;  // SPEC
  bool causal = false;
  std::string q, k, v, grad_out;             // .npy files, [batch, heads, len, head_dim]
  std::map<std::string, std::string> set;    // weight -> .npy file of its value
  std::map<std::string, std::string> gates;  // gate -> .npy file, [batch, heads, len, width]
};

template <class Archive>
void fields(Archive& archive, AttentionRequest& request) {
  archive("variant", request.variant);
  archive.maybe("causal", request.causal);
  archive("q", request.q);
  archive("k", request.k);
  archive("v", request.v);
  archive("grad_out", request.grad_out);
  archive.maybe("set", request.set);
  archive.maybe("gates", request.gates);
}

// Loads a cache, and what the next step brings: the last position of k and v.
struct CacheRequest {
  std::string variant;   // SPEC
  std::string kv_dtype;  // a CacheType
  std::string q, k, v;  // .npy files, [batch, heads, 1, head_dim], [batch, kv_heads, len, head_dim]
};

template <class Archive>
void fields(Archive& archive, CacheRequest& request) {
  archive("variant", request.variant);
  archive("kv_dtype", request.kv_dtype);
  archive("q", request.q);
  archive("k", request.k);
  archive("v", request.v);
}

// Loads a model.
struct ModelRequest {
  std::string variant;  // SPEC
  int64_t width = 0, heads = 0, feed_forward = 0, layers = 0, vocab = 0, classes = 0;
  int64_t batch = 0, length = 0;
  std::string tokens, targets;  // .npy files of int32
  std::string folder;           // for the weights to start from
  double learning_rate = 0, beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0, clip = 0;
};

template <class Archive>
void fields(Archive& archive, ModelRequest& request) {
  archive("variant", request.variant);
  archive("width", request.width);
  archive("heads", request.heads);
  archive("feed_forward", request.feed_forward);
  archive("layers", request.layers);
  archive("vocab", request.vocab);
  archive("classes", request.classes);
  archive("batch", request.batch);
  archive("length", request.length);
  archive("tokens", request.tokens);
  archive("targets", request.targets);
  archive("folder", request.folder);
  archive("learning_rate", request.learning_rate);
  archive("beta1", request.beta1);
  archive("beta2", request.beta2);
  archive("epsilon", request.epsilon);
  archive("weight_decay", request.weight_decay);
  archive("clip", request.clip);
}

}  // namespace attn::cli
