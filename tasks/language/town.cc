// Sentences of people; see town.h.
#include "tasks/language/town.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "core/base/check.h"

namespace attn::language {
namespace {

constexpr std::string_view kTownConsonants = "bdfgklmnprstvz", kTownVowels = "aeiou";
constexpr std::array<std::string_view, 12> kTrades = {"baker",  "smith",  "potter", "weaver",
                                                      "miller", "tailor", "hunter", "carter",
                                                      "fisher", "mason",  "cooper", "singer"};
constexpr std::array<std::string_view, 8> kThings = {"jug",  "lamp", "coat", "boat",
                                                     "bell", "drum", "cart", "ring"};
constexpr std::array<std::string_view, 8> kColours = {"red",   "blue",  "green", "white",
                                                      "black", "brown", "grey",  "yellow"};

struct Person {
  std::string name, place;
  std::string_view trade;
  bool woman = false;
};

template <size_t count>
std::string_view one_of(const std::array<std::string_view, count>& words, Rng& random) {
  return words[random.below(count)];
}

std::string syllables(int64_t count, Rng& random) {
  std::string word;
  for (int64_t i = 0; i < count; i++) {
    word += kTownConsonants[random.below(kTownConsonants.size())];
    word += kTownVowels[random.below(kTownVowels.size())];
  }
  return word;
}

class Town {
 public:
  Town(int64_t most, Rng& random) : most_(most), random_(random) {}

  std::string sentence() {
    const bool needed = people_.size() < 2, may = std::ssize(people_) < most_;
    if (needed || (may && random_.below(4) == 0)) return presented();
    const Person &one = somebody(), &other = somebody();
    const bool many = random_.coin();
    const std::string_view thing = one_of(kThings, random_), colour = one_of(kColours, random_);
    switch (random_.below(3)) {
      case 0:
        return fmt::format("the {} {} sold {} {} {}{} to {} of {}.", one.trade, one.name,
                           many ? "two" : "a", colour, thing, many ? "s" : "", other.name,
                           other.place);
      case 1:
        return fmt::format("{} of {} says that {} saw the {} {}.", one.name, one.place,
                           one.woman ? "she" : "he", other.trade, other.name);
      default:
        return fmt::format("the {}{} that {} the {} made for {} of {} {} {}.", thing,
                           many ? "s" : "", one.name, one.trade, other.name, other.place,
                           many ? "are" : "is", colour);
    }
  }

  int64_t people() const { return std::ssize(people_); }

 private:
  std::string presented() {
    Person person;
    do person.name = syllables(random_.between(2, 3), random_);
    while (std::any_of(people_.begin(), people_.end(),
                       [&](const Person& other) { return other.name == person.name; }));
    person.place = syllables(2, random_);
    person.trade = one_of(kTrades, random_);
    person.woman = random_.coin();
    people_.push_back(person);
    return fmt::format("{} is a {} from {}.", person.name, person.trade, person.place);
  }

  const Person& somebody() { return people_[random_.below(people_.size())]; }

  int64_t most_;
  Rng& random_;
  std::vector<Person> people_;
};

}  // namespace

TownText town_text(int64_t bytes, int64_t people, Rng& random) {
  Town town(people, random);
  TownText result;
  while (std::ssize(result.text) < bytes) result.text += town.sentence() + ' ';
  result.text.resize(static_cast<size_t>(bytes));
  result.people = town.people();
  return result;
}

}  // namespace attn::language
