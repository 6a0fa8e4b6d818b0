// A function of another language as an entry of the catalogue makes it, in float alone.
#pragma once

#include <functional>
#include <memory>

#include "python/extension/called.h"
#include "variants/api/attention.h"

namespace attn_python {

using MakeAttention =
    std::function<std::unique_ptr<attn::Attention>(const attn::AttentionConfig& config)>;
MakeAttention maker_of(const MakeCallee& make);

}  // namespace attn_python
