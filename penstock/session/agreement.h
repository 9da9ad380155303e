#pragma once

#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "penstock/base/base.h"
#include "penstock/sampling/sampling.h"

namespace penstock {

/// An all-gather of short texts, as MPI_Allgather: every rank gives its own,
/// and each gets all of them, in any order. Every rank calls it exactly once
/// per opening, also when its own opening has failed. It throws when the
/// others cannot be expected to answer any more.
using Agree = std::function<std::vector<std::string>(const std::string& mine)>;

/// Compares `facts` over all ranks of `rank.world`: a document whose values
/// decide which rows the batches hold. What is null on a rank is not compared.
///
/// When they differ, every rank throws the same error, which names what
/// differs, its values and their ranks: Error(source) "ranks.data" for `rows`
/// and `fingerprint`, Error(request) "ranks.settings" for all else. Where a
/// rank has reported a failure, the others throw "ranks.failed" of the kind
/// of that failure. Throws Error(request) "ranks.agree" when `agree` returns
/// anything else than one text of each rank.
void compare_ranks(const Agree& agree, const Rank& rank, const Json& facts);

/// Reports to the other ranks that the opening of this one has failed, so that
/// they do not wait for it. Never throws: what went wrong here comes first.
void report_failure(const Agree& agree, const Rank& rank,
                    const std::exception_ptr& failure) noexcept;

/// The text that report_failure() gives; `kind` is the name of an ErrorKind.
std::string failure_text(const Rank& rank, std::string_view kind,
                         const std::string& message);
std::string failure_text(const Rank& rank, const std::exception_ptr& failure);

/// Throws the failure of another rank, "ranks.failed", as failure_text() has
/// written it.
[[noreturn]] void refuse_failure(const std::string& text);

}  // namespace penstock
