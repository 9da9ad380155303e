// A trainer whose torch has no torch.distributed: the symbol is not found.
namespace c10d {
int is_available();
}  // namespace c10d

extern "C" int penstock_trainer_part() { return c10d::is_available(); }
