// Checks of what is handed from layer to layer; see carrying.h.
#include "variants/api/carrying.h"

#include "core/base/check.h"

namespace attn {

void CarryingMixer::check_received(bool defined) const {
  ATTN_CHECK(defined || !config().receives,
             "a layer that receives what the layer before hands on cannot run without it");
  ATTN_CHECK(!defined || config().receives, "the first layer of a variant receives nothing");
}

CarryingMixer::Passed CarryingMixer::pass(const Var& x, const Var& received,
                                          const Mask& mask) const {
  check_input(x, mask);
  check_received(received.defined());
  const Shape shape = handed_shape(x.dim(0), x.dim(1));
  ATTN_CHECK(!received.defined() || received.shape() == shape,
             "a layer received {}, the layers of its variant hand on {}", received.shape().str(),
             shape.str());
  Passed passed = do_pass(x, received, mask);
  ATTN_CHECK(passed.out.shape() == x.shape() && passed.handed.shape() == shape,
             "a mixer returned {} and hands on {}; expected {} and {}", passed.out.shape().str(),
             passed.handed.shape().str(), x.shape().str(), shape.str());
  return passed;
}

Var CarryingMixer::do_mix(const Var& x, const Mask& mask) const {
  check_received(false);
  return do_pass(x, {}, mask).out;
}

const CarryingMixer* as_carrying(const Attention& attention) {
  const auto* const mixer = dynamic_cast<const CarryingMixer*>(&attention);
  return mixer && mixer->carries() ? mixer : nullptr;
}

}  // namespace attn
