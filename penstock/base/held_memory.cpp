#include "penstock/base/held_memory.h"

#include <atomic>

namespace penstock {
namespace {

/// One for the process, as the limits are. Counters alone: nothing is decided
/// by them, so that no order between them is needed.
struct Account {
  std::atomic<std::size_t> bytes{0}, peak{0};
};

constinit std::array<Account, kHeldFors * kHeldIns> accounts;

Account& account_of(HeldFor owner, HeldIn place) {
  return accounts[static_cast<std::size_t>(owner) * kHeldIns +
                  static_cast<std::size_t>(place)];
}

}  // namespace

const char* name_of(HeldFor owner) {
  static constexpr std::array<const char*, kHeldFors> kNames = {
      "rows", "batches", "copies", "values", "keys", "records", "checkpoints"};
  return kNames[static_cast<std::size_t>(owner)];
}

const char* name_of(HeldIn place) {
  static constexpr std::array<const char*, kHeldIns> kNames = {
      "device", "pinned", "host", "files"};
  return kNames[static_cast<std::size_t>(place)];
}

MemoryCharge::MemoryCharge(HeldFor owner, HeldIn place, std::size_t bytes)
    : owner_(owner), place_(place) {
  change_to(bytes);
}

void MemoryCharge::change_to(std::size_t bytes) {
  if (bytes == bytes_) return;
  Account& account = account_of(owner_, place_);
  // Unsigned, so that less is more added.
  std::size_t now =
      account.bytes.fetch_add(bytes - bytes_, std::memory_order_relaxed) +
      (bytes - bytes_);
  bytes_ = bytes;
  std::size_t peak = account.peak.load(std::memory_order_relaxed);
  while (now > peak && !account.peak.compare_exchange_weak(
                           peak, now, std::memory_order_relaxed)) {
  }
}

std::array<HeldMemory, kHeldFors * kHeldIns> held_memory() {
  std::array<HeldMemory, kHeldFors * kHeldIns> all;
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = {.owner = static_cast<HeldFor>(i / kHeldIns),
              .place = static_cast<HeldIn>(i % kHeldIns),
              .bytes = accounts[i].bytes.load(std::memory_order_relaxed),
              .peak = accounts[i].peak.load(std::memory_order_relaxed)};
  return all;
}

}  // namespace penstock
