// Callables that do not call malloc. Function owns its closure in recycled memory; the tape stores
// backward functions in it. FunctionRef refers to a callable that must outlive the call; loops take
// their bodies as one.
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

#include "core/base/recycled.h"

namespace attn {

template <class Signature>
class Function;

template <class R, class... A>
class Function<R(A...)> {
 public:
  Function() = default;  // empty; calling it is undefined
  template <class F>
  requires(!std::same_as<F, Function> && std::is_invocable_r_v<R, F&, A...>) Function(F body)
      : body_(std::allocate_shared<F>(Recycled<F>(), std::move(body))),
        call_([](void* held, A... arguments) -> R {
          return (*static_cast<F*>(held))(std::forward<A>(arguments)...);
        }) {}
  explicit operator bool() const { return body_ != nullptr; }
  R operator()(A... arguments) const { return call_(body_.get(), std::forward<A>(arguments)...); }

 private:
  std::shared_ptr<void> body_;
  R (*call_)(void*, A...) = nullptr;
};

template <class Signature>
class FunctionRef;

template <class R, class... A>
class FunctionRef<R(A...)> {
 public:
  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, FunctionRef> && std::is_invocable_r_v<R, F&, A...>)
      FunctionRef(F&& body)
      : body_(const_cast<void*>(static_cast<const void*>(std::addressof(body)))),
        call_([](void* held, A... arguments) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(held))(std::forward<A>(arguments)...);
        }) {}
  R operator()(A... arguments) const { return call_(body_, std::forward<A>(arguments)...); }

 private:
  void* body_;
  R (*call_)(void*, A...);
};

}  // namespace attn
