// What is read from outside, one function a reader: each gets the bytes of one input and returns,
// or throws where the reader has a defect. libFuzzer calls them with inputs of its own (entry.cc),
// an ordinary test with the kept ones (corpus_test.cc).
#pragma once

#include <string_view>

namespace attn::fuzz {

void rows(std::string_view bytes);     // a rows file
void schema(std::string_view bytes);   // one line of it: schema, structs, hash
void reply(std::string_view bytes);    // what a child process writes
void spec(std::string_view bytes);     // SPEC, settings, values and ranges
void config(std::string_view bytes);   // a config file, and the values of its options
void sweep(std::string_view bytes);    // a sweep file
void npy(std::string_view bytes);      // a .npy file
void png(std::string_view bytes);      // a picture
void listops(std::string_view bytes);  // LRA's ListOps files; this one and those below read
void aan(std::string_view bytes);      // a text that stands for a folder (folder_of.h)
void imdb(std::string_view bytes);
void cifar10(std::string_view bytes);
void pathfinder(std::string_view bytes);  // metadata and pictures
void plain_text(std::string_view bytes);  // documents of a language model

struct Target {
  std::string_view name;
  void (*run)(std::string_view bytes);
};
inline constexpr Target kTargets[] = {{"rows", rows},
                                      {"schema", schema},
                                      {"reply", reply},
                                      {"spec", spec},
                                      {"config", config},
                                      {"sweep", sweep},
                                      {"npy", npy},
                                      {"png", png},
                                      {"listops", listops},
                                      {"aan", aan},
                                      {"imdb", imdb},
                                      {"cifar10", cifar10},
                                      {"pathfinder", pathfinder},
                                      {"plain_text", plain_text}};

}  // namespace attn::fuzz
