// Finite groups as tables of products, for word problems: cyclic, symmetric and alternating groups,
// and a direct product. A table takes O(order² · points) to make.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace attn::states {

// Elements are numbers in [0, order), and 0 is the identity. A number of a cyclic group stands for
// itself. Permutations are numbered in the lexicographic order of their lists of images; of an
// alternating group the even ones alone. A direct product numbers the pair (a, b) as
// a · (order of the second group) + b.
class Group {
 public:
  // "z2", "z60", "s3", "a4_z5" (alternating group of four points times a cyclic one), "a5", "s5".
  static Group named(std::string_view name);

  int32_t order() const { return order_; }
  // Permutations are composed from left to right: `first` is applied first, then `second`.
  int32_t product(int32_t first, int32_t second) const {
    return table_[static_cast<size_t>(first * order_ + second)];
  }
  // The number of points that a permutation moves; 0 in groups of other elements.
  int32_t moved(int32_t element) const { return moved_[static_cast<size_t>(element)]; }

  // Whether each element is a product of some of these.
  bool generated_by(const std::vector<int32_t>& elements) const;

  // The class of an element modulo the products of commutators, in [0, classes). It depends on how
  // often each factor of a product occurs, but not on the order of the factors.
  int32_t commutative_class(int32_t element) const { return class_[static_cast<size_t>(element)]; }
  int32_t commutative_classes() const { return classes_; }

 private:
  using Permutation = std::vector<int32_t>;

  Group(int32_t order, std::vector<int32_t> table, std::vector<int32_t> moved);
  static Group cyclic(int32_t order);
  static Group of_permutations(const std::vector<Permutation>& elements);
  static Group direct(const Group& left, const Group& right);
  int32_t inverse(int32_t element) const;
  // Which elements are products of these.
  std::vector<bool> products_of(const std::vector<int32_t>& elements) const;
  void find_commutative_classes();

  int32_t order_, classes_ = 0;
  std::vector<int32_t> table_, moved_, class_;
};

}  // namespace attn::states
