#include "python/engine/id_array.h"

#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace penstock::python {

void IdArray::Free::operator()(std::uint32_t* ids) const { std::free(ids); }

IdArray::IdArray(std::size_t room) { set_room(std::max<std::size_t>(1, room)); }

void IdArray::set_room(std::size_t room) {
  void* const moved = std::realloc(ids_.get(), room * sizeof(std::uint32_t));
  if (moved == nullptr) throw std::bad_alloc();
  static_cast<void>(ids_.release());
  ids_.reset(static_cast<std::uint32_t*>(moved));
  room_ = room;
}

void IdArray::append(std::span<const std::uint32_t> ids) {
  if (ids.empty()) return;
  if (room_ - size_ < ids.size())
    set_room(std::max(2 * room_, size_ + ids.size()));
  std::memcpy(ids_.get() + size_, ids.data(), ids.size_bytes());
  size_ += ids.size();
}

nanobind::object IdArray::to_numpy() && {
  set_room(std::max<std::size_t>(1, size_));  // what is left over goes back
  const nanobind::capsule owner(
      ids_.get(), [](void* memory) noexcept { std::free(memory); });
  std::uint32_t* const ids = ids_.release();
  return nanobind::cast(
      nanobind::ndarray<nanobind::numpy, const std::uint32_t,
                        nanobind::ndim<1>>(ids, {size_}, owner));
}

}  // namespace penstock::python
