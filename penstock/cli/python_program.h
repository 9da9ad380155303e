#pragma once

#include <string>

namespace penstock {

/// Becomes `python3 -m MODULE ARGUMENT`, where PENSTOCK_PYTHON names another
/// Python: this process goes on as that one. Throws Error(request), code
/// cli.python, where there is no such Python, or it has not this version of the
/// package penstock.
[[noreturn]] void become_python(const std::string& module,
                                const std::string& argument);

}  // namespace penstock
