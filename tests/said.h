// What an attn::Error says, and whether a text says something.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "core/base/check.h"

namespace attn {

// "" when `action` throws none.
template <class Action>
std::string fault_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

inline testing::AssertionResult says(std::string_view text, std::string_view part) {
  const bool is_there = text.find(part) != std::string_view::npos;
  return (is_there ? testing::AssertionSuccess() : testing::AssertionFailure())
         << "\"" << part << "\" in: " << text;
}

}  // namespace attn
