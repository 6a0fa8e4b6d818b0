// A fixture that runs a body on each instruction set of this machine.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "core/kernels/isa.h"

namespace attn {

class OnEveryIsa : public testing::Test {
 protected:
  void TearDown() override { hold_isa(before_); }
  template <class Body>
  void each(const Body& body) {
    for (const std::string& name : isas()) {
      SCOPED_TRACE(name);
      hold_isa(name);
      body();
    }
  }

 private:
  std::string before_ = isa();
};

}  // namespace attn
