// Tables of products; see group.h for the numbers of elements and the costs.
#include "tasks/states/group.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "core/base/check.h"

namespace attn::states {
namespace {

bool is_even(const std::vector<int32_t>& permutation) {
  bool even = true;
  for (size_t i = 0; i < permutation.size(); i++)
    for (size_t j = 0; j < i; j++) even ^= permutation[j] > permutation[i];
  return even;
}

std::vector<std::vector<int32_t>> permutations(int32_t points, bool even_alone) {
  std::vector<int32_t> images(static_cast<size_t>(points));
  std::iota(images.begin(), images.end(), 0);
  std::vector<std::vector<int32_t>> result;
  do {
    if (!even_alone || is_even(images)) result.push_back(images);
  } while (std::next_permutation(images.begin(), images.end()));
  return result;
}

}  // namespace

Group Group::named(std::string_view name) {
  if (name == "z2") return cyclic(2);
  if (name == "z60") return cyclic(60);
  if (name == "s3") return of_permutations(permutations(3, false));
  if (name == "a4_z5") return direct(of_permutations(permutations(4, true)), cyclic(5));
  if (name == "a5") return of_permutations(permutations(5, true));
  if (name == "s5") return of_permutations(permutations(5, false));
  throw_error(fmt::format("no group '{}'", name));
}

Group::Group(int32_t order, std::vector<int32_t> table, std::vector<int32_t> moved)
    : order_(order), table_(std::move(table)), moved_(std::move(moved)) {
  find_commutative_classes();
}

Group Group::cyclic(int32_t order) {
  std::vector<int32_t> table;
  for (int32_t a = 0; a < order; a++)
    for (int32_t b = 0; b < order; b++) table.push_back((a + b) % order);
  return {order, std::move(table), std::vector<int32_t>(static_cast<size_t>(order), 0)};
}

Group Group::of_permutations(const std::vector<Permutation>& elements) {
  std::map<Permutation, int32_t> number;
  for (const Permutation& p : elements) number.emplace(p, static_cast<int32_t>(number.size()));
  std::vector<int32_t> table, moved;
  for (const Permutation& first : elements) {
    int32_t count = 0;
    for (size_t i = 0; i < first.size(); i++) count += first[i] != static_cast<int32_t>(i);
    moved.push_back(count);
    for (const Permutation& second : elements) {
      Permutation both;
      for (const int32_t image : first) both.push_back(second[static_cast<size_t>(image)]);
      table.push_back(number.at(both));
    }
  }
  return {static_cast<int32_t>(elements.size()), std::move(table), std::move(moved)};
}

Group Group::direct(const Group& left, const Group& right) {
  const int32_t order = left.order_ * right.order_, width = right.order_;
  std::vector<int32_t> table;
  for (int32_t a = 0; a < order; a++)
    for (int32_t b = 0; b < order; b++)
      table.push_back(left.product(a / width, b / width) * width +
                      right.product(a % width, b % width));
  return {order, std::move(table), std::vector<int32_t>(static_cast<size_t>(order), 0)};
}

int32_t Group::inverse(int32_t element) const {
  int32_t other = 0;
  while (product(element, other) != 0) other++;
  return other;
}

std::vector<bool> Group::products_of(const std::vector<int32_t>& elements) const {
  std::vector<bool> reached(static_cast<size_t>(order_));
  std::vector<int32_t> found = {0};
  reached[0] = true;
  for (size_t i = 0; i < found.size(); i++)
    for (const int32_t element : elements) {
      const int32_t next = product(found[i], element);
      if (reached[static_cast<size_t>(next)]) continue;
      reached[static_cast<size_t>(next)] = true;
      found.push_back(next);
    }
  return reached;
}

bool Group::generated_by(const std::vector<int32_t>& elements) const {
  const std::vector<bool> reached = products_of(elements);
  return std::find(reached.begin(), reached.end(), false) == reached.end();
}

void Group::find_commutative_classes() {
  std::vector<int32_t> commutators, inverses;
  for (int32_t a = 0; a < order_; a++) inverses.push_back(inverse(a));
  for (int32_t a = 0; a < order_; a++)
    for (int32_t b = 0; b < order_; b++)
      commutators.push_back(product(product(a, b), product(inverses[static_cast<size_t>(a)],
                                                           inverses[static_cast<size_t>(b)])));
  std::sort(commutators.begin(), commutators.end());
  commutators.erase(std::unique(commutators.begin(), commutators.end()), commutators.end());
  const std::vector<bool> derived = products_of(commutators);
  class_.assign(static_cast<size_t>(order_), -1);
  for (int32_t a = 0; a < order_; a++) {
    if (class_[static_cast<size_t>(a)] >= 0) continue;
    for (int32_t b = 0; b < order_; b++)
      if (derived[static_cast<size_t>(b)]) class_[static_cast<size_t>(product(a, b))] = classes_;
    classes_++;
  }
}

}  // namespace attn::states
