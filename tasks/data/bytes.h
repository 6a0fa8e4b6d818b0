// Text as byte tokens, as in Long Range Arena (arXiv:2011.04006, 2.2.2 and 2.2.3). A token is a
// byte + 1, because 0 is padding. O(length).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attn::data {

inline std::vector<int32_t> byte_tokens(std::string_view text) {
  std::vector<int32_t> tokens;
  tokens.reserve(text.size());
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c) + 1);
  return tokens;
}

inline std::string text_of(const std::vector<int32_t>& tokens) {
  std::string text;
  text.reserve(tokens.size());
  for (const int32_t token : tokens) text += static_cast<char>(token - 1);
  return text;
}

}  // namespace attn::data
