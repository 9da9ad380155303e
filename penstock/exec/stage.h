#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace penstock {

/// The threads of one stage: `body(worker)` runs once on each of them.
///
/// The owner of the stage's queues closes them first; the destructor only
/// joins. `last` runs on the worker that ends last: there the stage closes its
/// output. Any exception of the body goes to `failed`, on that worker, before
/// `last`, as an Error that carries the stage's name. `failed` and `last` must
/// not throw.
///
/// When the system refuses a thread, `failed` is called, so that the others
/// end, and the constructor throws: Error(request), code exec.threads.
///
/// With 0 workers nothing runs until `run_inline()`, which runs the body as
/// worker 0 on the caller's thread.
class Stage {
 public:
  struct Options {
    std::string name;
    int workers = 1;
    std::function<void(int worker)> body;
    std::function<void(std::exception_ptr)> failed;
    std::function<void()> last;
  };

  explicit Stage(Options options);
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  void run_inline();
  /// Starts that many more threads while others run, and gives how many could
  /// be: fewer where the system refuses one, which the log says, and none where
  /// all have ended already. By the thread that joins.
  int add(int workers);
  void join();

 private:
  struct State;
  struct Place;
  void start(Place& place);
  Place& free_place();

  std::unique_ptr<State> state_;
  std::vector<std::unique_ptr<Place>> places_;
};

/// Starts that many threads at the same time and ends them again. Throws what a
/// Stage throws where the system refuses one: for use before calling a library
/// that hangs or ends the process in that case.
void try_threads(const std::string& name, int threads);

/// `error` with the stage's name in front; anything that is not an Error
/// becomes an internal one, lack of memory an out_of_memory one. Where there is
/// no memory for that it stays unchanged.
std::exception_ptr named_error(std::exception_ptr error,
                               const std::string& stage) noexcept;

}  // namespace penstock
