#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace penstock {

/// First in, first out, in memory that is used again and again: it allocates
/// only to hold more than ever before. Not thread-safe.
template <class T>
class Ring {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }

  void push(T item) {
    if (size_ == places_.size()) grow();
    places_[(first_ + size_++) % places_.size()] = std::move(item);
  }
  /// The oldest item; there must be one.
  T pop() {
    T item = std::exchange(places_[first_], T());
    first_ = (first_ + 1) % places_.size();
    --size_;
    return item;
  }

 private:
  void grow() {
    std::vector<T> larger(places_.empty() ? 4 : 2 * places_.size());
    for (std::size_t i = 0; i < size_; ++i)
      larger[i] = std::move(places_[(first_ + i) % places_.size()]);
    places_ = std::move(larger);
    first_ = 0;
  }

  std::vector<T> places_;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

}  // namespace penstock
