// How fast does text become a store of tokens, beside reading it and tokenising
// it alone?
//
//     bench_prepare_text TOKENIZER.json [MIB [REPEATS]]
//
// Documents of about 4 KB are cut from the text files that are on this machine
// (/usr/include, /usr/share, /usr/lib/python3*), as JSON lines; where there are
// fewer than MIB, they come again. In turns, all by two threads: the lines are
// read and their field `text` parsed; the documents, in memory, are tokenised;
// `prepare` does all of it and writes the store, in parts that a killed one
// would go on from. Each is in bytes of text a second. Memory is that of
// processes of their own that prepare a quarter of the documents and all: what
// was resident at most, with the pages of files that are mapped.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "bench/child.h"
#include "bench/measure.h"
#include "penstock/base/utf8.h"
#include "penstock/inspect/inspect.h"
#include "penstock/sources/sources.h"
#include "penstock/tokenizer/tokenizer.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

constexpr int kThreads = 2;
constexpr std::size_t kDocument = 4096;

struct Corpus {
  std::vector<std::string> documents;
  std::size_t bytes = 0, unlike = 0;  // of all; of those that differ
};

void add_file(const fs::path& path, std::vector<std::string>& documents) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!is_utf8(text) || text.find('\0') != text.npos) return;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = text.find('\n', std::min(begin + kDocument, text.size()));
    end = end == text.npos ? text.size() : end + 1;
    documents.push_back(text.substr(begin, end - begin));
    begin = end;
  }
}

Corpus make_corpus(std::size_t bytes) {
  Corpus made;
  std::vector<fs::path> files;
  for (const char* root : {"/usr/include", "/usr/share/doc", "/usr/share/perl",
                           "/usr/lib/python3", "/usr/lib/python3.11"}) {
    std::error_code none;
    for (fs::recursive_directory_iterator at(root, none), end; at != end;
         at.increment(none)) {
      if (none) break;
      if (at->is_regular_file(none)) files.push_back(at->path());
    }
  }
  std::ranges::sort(files);
  for (const fs::path& path : files) {
    const std::string end = path.extension().string();
    if (end == ".gz" || end == ".pyc" || end == ".so") continue;
    const std::size_t before = made.documents.size();
    add_file(path, made.documents);
    for (std::size_t d = before; d < made.documents.size(); ++d)
      made.bytes += made.documents[d].size();
    if (made.bytes >= bytes) break;
  }
  made.unlike = made.bytes;
  PENSTOCK_ASSERT(!made.documents.empty(), "there is text on this machine");
  for (std::size_t d = 0; made.bytes < bytes; ++d) {
    made.documents.push_back(made.documents[d]);
    made.bytes += made.documents.back().size();
  }
  return made;
}

void write_lines(const Corpus& corpus, std::size_t count, const fs::path& to) {
  std::ofstream file(to, std::ios::binary);
  for (std::size_t d = 0; d < count; ++d)
    file << "{\"text\": " << Json(corpus.documents[d]).dump() << "}\n";
}

Json job_of(const fs::path& lines, const std::string& tokenizer,
            const fs::path& stores) {
  Json job;
  job["source"]["kind"] = "jsonl";
  job["source"]["path"] = lines.string();
  Json& tokens = job["fields"]["tokens"]["tokens"];
  tokens["column"] = "text";
  tokens["tokenizer"] = tokenizer;
  job["loader"]["cache_dir"] = stores.string();
  job["loader"]["workers"] = kThreads;
  job["device"] = "cpu";
  return job;
}

void in_threads(const std::function<void(std::size_t)>& work) {
  std::vector<std::jthread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) threads.emplace_back(work, t);
}

/// Reads all lines and parses their text, and does nothing with it.
void read_all(const fs::path& lines) {
  Json section;
  section["kind"] = "jsonl";
  section["path"] = lines.string();
  std::unique_ptr<Source> source =
      open_source(parse_source_spec(section, "source"),
                  {{.column = "text", .as = ReadAs::value}}, {});
  const std::vector<Partition> parts = source->partitions(kThreads);
  in_threads([&](std::size_t t) {
    for (std::size_t p = t; p < parts.size(); p += kThreads)
      source->open_reader()->scan(parts[p], {},
                                  [](KeyList&, Block&) { return true; });
  });
}

void tokenise_all(const Corpus& corpus,
                  const std::shared_ptr<const Tokenizer>& tokenizer) {
  in_threads([&](std::size_t t) {
    Encoder encoder(tokenizer);
    std::vector<std::uint32_t> ids;
    for (std::size_t d = t; d < corpus.documents.size(); d += kThreads) {
      ids.clear();
      encoder.encode(corpus.documents[d], false, ids);
    }
  });
}

/// By the clock, and by the processors: all threads together.
struct Taken {
  Repeats wall, cpu;

  std::function<double()> measuring(std::function<void()> act) {
    return [this, act = std::move(act)] {
      const double before = process_cpu_seconds();
      wall.add(wall_seconds(act));
      cpu.add(process_cpu_seconds() - before);
      return 0.0;
    };
  }
  Json json(const char* name, const Corpus& corpus) const {
    const auto megabytes = static_cast<double>(corpus.bytes) / 1e6;
    Json result;
    result["workload"] = name;
    result["seconds"] = wall.json();
    result["mb_per_s"] = megabytes / wall.median();
    result["cpu_seconds"] = cpu.json();
    result["mb_per_cpu_s"] = megabytes / cpu.median();
    return result;
  }
};

Json memory_json(const char* name, const fs::path& job,
                 const fs::path& stores) {
  fs::remove_all(stores);
  const ChildRun run =
      run_child({penstock_program(), "prepare", job.string(), "--json"});
  const Json told = Json::parse(run.output, "prepare");
  Json result;
  result["workload"] = name;
  result["documents"] = *told.find("documents");
  result["store_bytes"] = *told.find("bytes");
  result["peak_mib"] = static_cast<double>(run.peak_bytes) / (1 << 20);
  result["wall_seconds"] = run.wall_seconds;
  result["cpu_seconds"] = run.cpu_seconds;
  return result;
}

}  // namespace
}  // namespace penstock

int main(int count, char** arguments) {
  using namespace penstock;
  Json result = result_of("prepare_text",
                          "How fast does text become a store of tokens, beside "
                          "reading it and tokenising it alone?",
                          count, arguments);
  PENSTOCK_ASSERT(count > 1, "a tokenizer.json is named");
  const std::string tokenizer = fs::absolute(arguments[1]).string();
  const std::int64_t mib = argument(count, arguments, 2, 200);
  const auto repeats = static_cast<int>(argument(count, arguments, 3, 3));
  const fs::path folder = fs::temp_directory_path() / "penstock_prepare_text";
  const fs::path lines = folder / "corpus.jsonl", few = folder / "few.jsonl";
  const fs::path stores = folder / "stores";
  fs::create_directories(folder);
  const Corpus corpus = make_corpus(static_cast<std::size_t>(mib) << 20);
  write_lines(corpus, corpus.documents.size(), lines);
  write_lines(corpus, corpus.documents.size() / 4, few);
  const Json job = job_of(lines, tokenizer, stores);
  const auto loaded = Tokenizer::load(tokenizer);
  Taken read, tokenise, prepare;
  in_turns(repeats, {read.measuring([&] { read_all(lines); }),
                     tokenise.measuring([&] { tokenise_all(corpus, loaded); }),
                     prepare.measuring([&] {
                       fs::remove_all(stores);
                       prepare_job(parse_job(job), {}, {});
                     })});
  result["text_bytes"] = corpus.bytes;
  result["text_bytes_that_differ"] = corpus.unlike;
  result["documents"] = corpus.documents.size();
  result["threads"] = kThreads;
  result["results"].push_back(read.json("read", corpus));
  result["results"].push_back(tokenise.json("tokenise", corpus));
  Json prepared = prepare.json("prepare", corpus);
  prepared["of_the_slower"] =
      std::max(read.wall.median(), tokenise.wall.median()) /
      prepare.wall.median();
  prepared["of_both_by_cpu"] =
      (read.cpu.median() + tokenise.cpu.median()) / prepare.cpu.median();
  prepared["must_reach"] = "of_the_slower >= 0.8";
  result["results"].push_back(std::move(prepared));
  for (const fs::path& of : {few, lines}) {
    const fs::path file = folder / "job.json";
    real_files().write_atomic(file, job_of(of, tokenizer, stores).dump());
    result["results"].push_back(memory_json(
        of == few ? "memory, a quarter" : "memory, all", file, stores));
  }
  fs::remove_all(folder);
  return finish(result);
}
