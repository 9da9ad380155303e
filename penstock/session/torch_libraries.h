#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "penstock/base/error.h"

namespace penstock {

/// The C++ libraries of an installed PyTorch.
struct TorchLibraries {
  std::filesystem::path folder;  ///< the package: "site-packages/torch"
  std::string version;           ///< "2.11.0+cu130"; empty: not known
  bool loaded = false;           ///< they are in this process already

  /// "2.11", the part of the version that an ABI goes with.
  std::string release() const;
};

/// The torch of this process where one is loaded, as after `import torch`; else
/// the one in the folder that the environment variable PENSTOCK_TORCH_DIR
/// names, which the Python that started the program sets: it holds torch/.
std::optional<TorchLibraries> find_torch();

struct TrainerChoice {
  std::vector<std::string> releases;  ///< of all trainers, the newest first
  std::string release;                ///< "2.11"; empty: there is no trainer
  std::optional<Error> refusal;       ///< to throw where that cannot be loaded
};

/// The trainer to load, out of PREFIX2.11.so and the like in these folders: the
/// one for the torch that was found, whose libraries are loaded by their
/// absolute paths, so that the trainer finds them by their names. Where none
/// was found, or it is not loaded and fits no trainer, the newest trainer,
/// which in a build from source has a run path to its own libraries. Throws
/// Error(request), "trainer.torch", that names the releases, where the torch of
/// this process fits none, or the one that was found cannot be loaded.
TrainerChoice choose_trainer(const std::string& prefix,
                             const std::vector<std::filesystem::path>& folders);

}  // namespace penstock
