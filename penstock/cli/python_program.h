#pragma once

#include <string>

#include "penstock/base/json.h"

namespace penstock {

/// Becomes `python3 -m MODULE ARGUMENT`, where PENSTOCK_PYTHON names another
/// Python: this process goes on as that one. Throws Error(request), code
/// cli.python, where there is no such Python, or it has not this version of the
/// package penstock; `what` then could not be done.
[[noreturn]] void become_python(
    const std::string& module, const std::string& argument,
    const std::string& what = "cannot train your own model",
    const std::string& beside = "torch");

/// Runs `python3 -m MODULE REQUEST`, the request with "check": true, and waits
/// for it: whether it would refuse what it is to do. Throws Error(request) with
/// what it answers, or as become_python() does.
void check_with_python(const std::string& module, Json request);

}  // namespace penstock
