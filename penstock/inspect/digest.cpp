#include "penstock/inspect/digest.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "penstock/session/session.h"

namespace penstock {
namespace {

Json describe(const Batch& batch, const HostCopy& copy, const Dataset& rows) {
  Json json;
  json["epoch"] = batch.at().epoch;
  json["step"] = batch.at().step;
  json["keys"] = Json::Array{};
  for (SampleId id : batch.ids()) json["keys"].push_back(key_of(rows, id));
  Sha256 order, bytes;
  order.add(std::as_bytes(batch.ids()));
  bytes.add(copy.bytes());
  json["order_digest"] = order.hex();
  json["bytes_digest"] = bytes.hex();
  return json;
}

std::string file_of(Position at) {
  char name[80];
  std::snprintf(name, sizeof(name), "epoch-%06ld-step-%09ld.safetensors",
                long(at.epoch), long(at.step));
  return name;
}

void look(const Job& job, const BatchQuery& query,
          const std::function<void(const Json&)>& each) {
  auto session = open_loader(
      job, {.side = query.side,
            .rank = query.rank,
            .batches = -1,
            .stop = {std::shared_ptr<void>(), query.stop},  // which it outlives
            .agrees_later = true});
  std::int64_t end = std::min(query.end_step, session->steps_per_epoch());
  if (query.first_step >= end) return;
  session->seek({.epoch = query.epoch, .step = query.first_step});
  std::optional<OutputFolder> out;
  if (!query.out.empty()) out.emplace(real_files(), query.out, "--out");
  for (std::int64_t step = query.first_step; step < end; ++step) {
    Batch batch = promised(session->next());
    HostCopy copy(batch, session->stream());
    if (out) out->write(file_of(batch.at()), safetensors(copy.tensors()));
    each(describe(batch, copy, *session->opened()));
    end_if_stopped(query.stop);
  }
}

}  // namespace

bool look_at_batches(const Job& job, const BatchQuery& query,
                     const std::function<void(const Json&)>& each) {
  try {
    look(job, query, each);
  } catch (const Error& error) {
    if (!is_stop(error)) throw;
    return false;
  }
  return true;
}

}  // namespace penstock
