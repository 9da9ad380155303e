#pragma once

#include <string>
#include <vector>

namespace penstock {

/// The command without `--ranks N`: that of one rank.
std::vector<std::string> command_of_rank(
    const std::vector<std::string>& command);

/// Whether the command has it.
bool names_ranks(const std::vector<std::string>& command);

/// Throws Error(request) where this process, which is asked to start ranks, has
/// been started as one of several itself.
void check_no_rank();

/// Runs the command as `ranks` processes of this machine, which find each other
/// by their environment (see rank_place()), and waits for all of them. Rank 0
/// has this process's outputs; what the others write is shown where one of them
/// is the first to fail, its end on standard error.
///
/// Gives the exit code of the first that failed, 128 + the signal for one that
/// a signal ended, or 0. The others then end by themselves, or are ended after
/// half a minute. SIGINT, SIGTERM, SIGHUP, SIGXCPU and SIGTSTP go to all ranks,
/// SIGUSR1 and SIGUSR2 to rank 0, which saves for all. Where this process is
/// killed, the ranks get SIGTERM.
///
/// One thread, which stays to the end of the program.
int run_as_ranks(const std::vector<std::string>& command, int ranks, bool json);

/// For a process that may be such a rank: it gets SIGTERM when the process that
/// has started it ends before it.
void end_with_launcher();

}  // namespace penstock
