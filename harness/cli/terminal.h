// Standard output and standard error: text, colours, and whether a path can be written.
#pragma once

#include <string>
#include <string_view>

namespace attn::cli {

void print(std::string_view text);  // to stdout; an IoError when it cannot be written (a full disk,
                                    // a closed pipe)
void warn(std::string_view text);   // to stderr

// As a shell reads it: quoted where it needs to be.
std::string shell_word(const std::string& word);

enum class Stream { out, err };
bool wants_color(const std::string& choice,
                 Stream stream);  // auto|always|never, a terminal, NO_COLOR, TERM=dumb
bool is_terminal(Stream stream);
// Columns of the terminal; of one that does not say, or is no terminal, `otherwise`.
size_t terminal_width(Stream stream, size_t otherwise);
// The first `width` characters of a line, the last of them "…" where it is longer.
std::string cut_to(const std::string& line, size_t width);

// IoError unless the folder of `path` exists (or can be made) and a file of that name can be
// written there. Says so where it makes the folder, unless `quiet`.
void require_writable(const std::string& path, bool quiet = false);

}  // namespace attn::cli
