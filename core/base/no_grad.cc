// The flag of a thread; see no_grad.h.
#include "core/base/no_grad.h"

#include <utility>

namespace attn {
namespace {

thread_local bool no_grad = false;

}  // namespace

NoGrad::NoGrad() : before_(std::exchange(no_grad, true)) {}
NoGrad::~NoGrad() { no_grad = before_; }
bool NoGrad::active() { return no_grad; }

}  // namespace attn
