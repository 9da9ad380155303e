#include "penstock/transforms/operations.h"

#include <algorithm>

#include "penstock/base/error.h"

namespace penstock {

// One line for each kind: the function is in its folder.
#define PENSTOCK_OPERATION_KINDS(KIND) KIND(mixup) KIND(cutmix)

#define KIND(name) OperationDescriptor name##_operation();
PENSTOCK_OPERATION_KINDS(KIND)
#undef KIND

const std::vector<OperationDescriptor>& operation_descriptors() {
#define KIND(name) name##_operation(),
  static const std::vector<OperationDescriptor> all = {
      PENSTOCK_OPERATION_KINDS(KIND)};
#undef KIND
  return all;
}

namespace {

const OperationDescriptor& operation_kind(const Spec& entry) {
  const OperationDescriptor* found = nullptr;
  std::string all;
  for (const OperationDescriptor& kind : operation_descriptors()) {
    all += (all.empty() ? "'" : " nor '") + kind.key + "'";
    if (!entry.has(kind.key)) continue;
    if (found != nullptr)
      entry.refuse(kind.key,
                   "both '" + found->key + "' and '" + kind.key + "' are given",
                   "give each operation its own entry");
    found = &kind;
  }
  if (found == nullptr)
    entry.refuse(operation_descriptors()[0].key,
                 "the entry has neither " + all + ", which names its kind",
                 "name the kind with the tensors that it changes");
  return *found;
}

SettingSchema side_schema() {
  SettingSchema side{.key = "side",
                     .rule = settings::choice_rule(
                         {"train", "all"},
                         "Which batches are changed. train: those of the train "
                         "side; all: validation batches too")};
  side.rule["default"] = "train";
  return side;
}

Json side_json(bool every_side) { return every_side ? "all" : "train"; }

}  // namespace

std::vector<Operation> parse_operations(const Json& list,
                                        const std::string& path) {
  if (!list.is_array())
    throw Error(ErrorKind::request,
                {.code = "settings.value",
                 .what = "cannot use the settings",
                 .where = path,
                 .why = "found " + std::string(list.type_name()) +
                        ", expected a list of operations",
                 .next = "write, for example, [{\"mixup\": [\"image\"]}]"});
  std::vector<Operation> operations;
  for (const Json& json : list.array()) {
    Spec entry(json, path + "[" + std::to_string(operations.size()) + "]");
    Operation operation{.kind = operation_kind(entry).make(entry)};
    operation.every_side =
        entry.choice("side", "train", {"train", "all"}) == "all";
    entry.finish();
    operations.push_back(std::move(operation));
  }
  return operations;
}

Json operations_schema() {
  std::vector<KindSettings> kinds;
  for (const OperationDescriptor& kind : operation_descriptors())
    kinds.push_back({.settings = kind.settings()});
  Json schema;
  schema["type"] = "array";
  schema["description"] = "Changes to whole batches, applied in this order";
  schema["items"] = schema_of_kinds({side_schema()}, kinds);
  return schema;
}

Json recipes_of(const std::vector<Operation>& operations) {
  Json::Array list;
  for (const Operation& operation : operations) {
    Json recipe = operation.kind->recipe();
    recipe["side"] = side_json(operation.every_side);
    list.push_back(std::move(recipe));
  }
  return list;
}

void refuse_operation(const std::string& path, std::string why,
                      std::string next) {
  throw Error(ErrorKind::request,
              {.code = "loader.operations",
               .what = "cannot apply this operation to batches",
               .where = path,
               .why = std::move(why),
               .next = std::move(next)});
}

std::size_t find_output(const std::vector<Output>& outputs,
                        const std::string& name, const std::string& path) {
  auto found = std::ranges::find(outputs, name, &Output::name);
  if (found == outputs.end()) {
    std::string all;
    for (const Output& output : outputs)
      all += (all.empty() ? "'" : ", '") + output.name + "'";
    refuse_operation(path, "a batch has no tensor '" + name + "', only " + all,
                     "name one of these");
  }
  if (found->lengths != Lengths::equal)
    refuse_operation(
        path,
        "the samples of '" + name + "' differ in length (" +
            (found->lengths == Lengths::packed ? "packed" : "padded") +
            "), but the operation needs rows of equal size",
        "name a tensor whose samples are of equal size");
  return static_cast<std::size_t>(found - outputs.begin());
}

BoundOperation::BoundOperation(const std::vector<Output>& outputs,
                               std::vector<std::size_t> uses,
                               std::vector<Output> adds)
    : uses_(std::move(uses)), adds_(std::move(adds)) {
  for (std::size_t place : uses_) bytes_.push_back(outputs[place].bytes());
  for (const Output& added : adds_) bytes_.push_back(added.bytes());
}

std::size_t BoundOperation::row_bytes() const {
  std::size_t all = 0;
  for (std::size_t bytes : bytes_) all += bytes;
  return all;
}

// Its input is copied aside first, as a kernel would have it that reads rows
// while others are written.
void BoundOperation::queue(const OperationBatch& batch, std::byte* scratch,
                           Stream& stream) const {
  PENSTOCK_ASSERT(stream.runs_host_code(),
                  "an operation is queued where its kind says that it can be");
  HostKernel kernel;
  auto rows = static_cast<std::size_t>(batch.rows);
  std::byte* from = scratch;
  for (std::size_t t = 0; t < bytes_.size(); ++t) {
    std::size_t bytes = bytes_[t] * rows;
    if (bytes == 0) continue;
    if (t < uses_.size()) {
      stream.copy(from, batch.tensors[t], bytes);
      kernel.read.emplace_back(from, bytes);
    }
    kernel.written.emplace_back(batch.tensors[t], bytes);
    from += bytes;
  }
  kernel.run = [this, read = kernel.read, written = kernel.written,
                tensors =
                    std::vector(batch.tensors.begin(), batch.tensors.end()),
                live = std::vector(batch.live.begin(), batch.live.end()),
                rows = batch.rows, key = batch.key] {
    for (std::size_t i = 0; i < read.size(); ++i)
      std::ranges::copy(read[i], const_cast<std::byte*>(written[i].data()));
    OperationScratch own;
    apply({.tensors = tensors, .rows = rows, .live = live, .key = key}, own);
  };
  stream.run(std::move(kernel));
}

}  // namespace penstock
