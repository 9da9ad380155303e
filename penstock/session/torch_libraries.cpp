#include "penstock/session/torch_libraries.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "penstock/base/base.h"
#include "penstock/base/plugin_releases.h"
#include "penstock/base/shown.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

/// In the order in which they need each other.
constexpr const char* kTorchLibraries[] = {"libc10.so", "libtorch_cpu.so"};

/// Of torch/version.py: __version__ = '2.11.0+cu130'
std::string version_in(const fs::path& torch) {
  std::ifstream file(torch / "version.py");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("__version__")) continue;
    const std::size_t begin = line.find_first_of("'\"") + 1;
    const std::size_t end = line.find_first_of("'\"", begin);
    if (begin != 0 && end != line.npos) return line.substr(begin, end - begin);
  }
  return "";
}

/// The folder of the torch that is in this process; empty: none is.
fs::path loaded_torch() {
  void* library = ::dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return {};
  link_map* at = nullptr;
  fs::path folder;
  if (::dlinfo(library, RTLD_DI_LINKMAP, &at) == 0 && at != nullptr)
    folder = fs::path(at->l_name).parent_path().parent_path();
  ::dlclose(library);
  return folder;
}

Error torch_refusal(const TorchLibraries& torch, std::string why,
                    const std::vector<std::string>& releases) {
  return Error(
      ErrorKind::request,
      {.code = "trainer.torch",
       .what = "cannot train a built-in model with this PyTorch",
       .where = torch.folder.string(),
       .why = std::move(why),
       .next = "install one of " + listed(releases) +
               " (pip install 'torch==" + releases.front() +
               ".*'), or train your own torch module, which takes any"});
}

void load_torch(const TorchLibraries& torch,
                const std::vector<std::string>& releases) {
  for (const char* name : kTorchLibraries)
    if (::dlopen((torch.folder / "lib" / name).c_str(),
                 RTLD_NOW | RTLD_GLOBAL) == nullptr)
      throw torch_refusal(torch, ::dlerror(), releases);
}

}  // namespace

std::string TorchLibraries::release() const {
  const std::size_t first = version.find('.');
  return version.substr(0, version.find_first_not_of("0123456789", first + 1));
}

std::optional<TorchLibraries> find_torch() {
  if (const fs::path loaded = loaded_torch(); !loaded.empty())
    return TorchLibraries{loaded, version_in(loaded), true};
  const char* named = std::getenv("PENSTOCK_TORCH_DIR");
  if (named == nullptr || *named == '\0') return std::nullopt;
  const fs::path folder = fs::path(named) / "torch";
  std::error_code unknown;
  if (!fs::exists(folder / "lib" / kTorchLibraries[1], unknown))
    return std::nullopt;
  return TorchLibraries{folder, version_in(folder), false};
}

TrainerChoice choose_trainer(const std::string& prefix,
                             const std::vector<fs::path>& folders) {
  TrainerChoice chosen = {.releases = plugin_releases(prefix, folders)};
  const std::vector<std::string>& releases = chosen.releases;
  if (releases.empty()) return chosen;
  chosen.release = releases.front();
  const std::optional<TorchLibraries> torch = find_torch();
  if (!torch) return chosen;
  if (std::ranges::find(releases, torch->release()) == releases.end()) {
    chosen.refusal = torch_refusal(*torch,
                                   "found PyTorch " + torch->version +
                                       ", expected one of " + listed(releases),
                                   releases);
    if (torch->loaded) throw *chosen.refusal;
    return chosen;
  }
  if (!torch->loaded) load_torch(*torch, releases);
  chosen.release = torch->release();
  return chosen;
}

}  // namespace penstock
