// One rank of a training loop of the user, as the end-to-end tests run it:
//
//     RANK=1 WORLD_SIZE=4 own_loop JOB [STATE]
//
// Goes on from the state in the file STATE, where one is named. Prints a line
// of JSON once the rows are there, and one for each batch: its samples, each
// with its key and the SHA-256 of its bytes, and the state behind it. Takes the
// next batch when it has read a line, as ranks wait for one another after each
// step; at the end of its input it waits no more. SCAN_BYTES limits what the
// scan holds in memory.
#include <penstock/run/run.h>
#include <penstock/session/session.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <system_error>

namespace penstock {
namespace {

std::int64_t number_of(const char* variable, std::int64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoll(text);
}

/// The rows of the job's source, with a limit of the scan's memory.
RowsMaker rows_with(std::int64_t scan_bytes) {
  return [scan_bytes](const Job& job, Device& device, StopFlag stop) {
    TableDatasetOptions options = dataset_options(job, device.memory_kind());
    options.scan_bytes = static_cast<std::size_t>(scan_bytes);
    options.stop = std::move(stop);
    return TableDataset::prepare(options, device);
  };
}

void say(const Json& line) {
  if (std::puts(line.dump().c_str()) < 0 || std::fflush(stdout) != 0)
    throw Error(ErrorKind::request, {.code = "own_loop.output",
                                     .what = "cannot write the line",
                                     .where = "standard output"});
}

void wait_for_others() {
  for (int c = 0; c != '\n' && c != EOF; c = std::getchar()) {
  }
}

Json opened(const Session& session) {
  const TierPlan& plan = session.rows().plan();
  Json json;
  json["fingerprint"] = session.rows().fingerprint();
  json["tier"] = name_of(plan.tier);
  json["scanned"] = plan.scan.has_value();
  json["spilled"] = plan.scan ? plan.scan->spilled : std::size_t{0};
  return json;
}

Json line_of(const Batch& batch, Session& session) {
  const HostCopy copy(batch, session.stream());
  const auto rows = static_cast<std::size_t>(batch.rows());
  Json json;
  json["epoch"] = batch.at().epoch;
  json["step"] = batch.at().step;
  json["samples"] = Json(Json::Array{});
  for (std::size_t r = 0; r < rows; ++r) {
    Sha256 digest;
    for (const NamedTensor& tensor : copy.tensors()) {
      const std::size_t bytes = tensor.view.bytes() / rows;
      digest.add(std::span(tensor.view.data + r * bytes, bytes));
    }
    Json sample;
    sample.push_back(key_of(session.rows(), batch.ids()[r]));
    sample.push_back(digest.hex());
    json["samples"].push_back(std::move(sample));
  }
  json["state"] = session.state();
  return json;
}

void run(int count, char** arguments) {
  OpenOptions options;
  options.rank = {.rank = static_cast<int>(number_of("RANK", 0)),
                  .world = static_cast<int>(number_of("WORLD_SIZE", 1))};
  if (std::int64_t bytes = number_of("SCAN_BYTES", 0))
    options.rows = rows_with(bytes);
  auto session = open_loader(load_job(arguments[1], {}), options);
  if (count > 2)
    session->load_state(
        Json::parse(real_files().read(arguments[2]), arguments[2]));
  say(opened(*session));
  while (std::optional<Batch> batch = session->next()) {
    say(line_of(*batch, *session));
    wait_for_others();
  }
}

}  // namespace
}  // namespace penstock

static int no_memory() {
  std::fputs("own_loop: the host is out of memory\n", stderr);
  return penstock::exit_code_of(penstock::ErrorKind::out_of_memory);
}

int main(int count, char** arguments) try {
  if (count < 2) return 2;
  penstock::run(count, arguments);
} catch (const penstock::Error& error) {
  std::puts(error.json().c_str());
  return penstock::exit_code_of(error.kind());
} catch (const std::system_error& error) {
  if (error.code() != std::errc::not_enough_memory) throw;
  return no_memory();
} catch (const std::bad_alloc&) {
  return no_memory();
}
