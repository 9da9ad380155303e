#pragma once

#include <string>

namespace penstock {

// What is answered to a text that does not name a source: the one thing to
// write instead, found by looking at the file, the folder or the scheme.

/// The name of a file that is not there, and of which a message would hide a
/// part.
bool may_hold_password(const std::string& file);

/// Throws Error(request), source.uri, with `setting` in front. No part of the
/// URI is shown that may be a password.
[[noreturn]] void refuse_uri(const std::string& uri, const std::string& setting,
                             std::string why, std::string next);

/// Throws Error(request), source.uri, for a URI of no kind. `setting` is the
/// place of the URI. No part that may be a password is shown.
[[noreturn]] void refuse_unnamed(const std::string& uri,
                                 const std::string& setting);

/// The same where what stands before a colon is near to a kind of source:
/// "parket:t.parquet". Returns where it is not.
void refuse_near_kind(const std::string& uri, const std::string& setting);

/// The same for a folder, without a prefix, whose files do not show one kind of
/// table; `kinds` are the kinds that they show.
[[noreturn]] void refuse_folder(const std::string& folder,
                                const std::string& kinds,
                                const std::string& setting);

/// How to read the rows that a file holds as JSON, one object a line or in one
/// list: "write jsonl:train.json"; empty where it holds neither.
std::string how_to_read_json(const std::string& path);

/// The URI of a kind, with the place shown as a message may show it.
std::string shown_place(const std::string& uri);

}  // namespace penstock
