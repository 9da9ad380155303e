#pragma once

#include "penstock/base/json.h"

namespace penstock {

/// Each optional part of this build: its name, whether it is `there` and what
/// it `says`: what it is made of or, if it is not there, why and what to do. A
/// GPU that is there comes with what its driver tells of it. Nothing is
/// measured.
Json doctor_parts();

/// What this machine and this build can do: `machine`, limits with their
/// origins; `system`, what it runs in, with the drive of the user's cache;
/// `profile`, what the machine really gives (see machine_profile()), measured
/// again if `measure` is set; `build`, what this program is made of;
/// `parts`, those of doctor_parts(). `repairs` are things that hold work back,
/// each
/// {"what", "next"}: a command that mends it.
Json doctor(bool measure = false);

}  // namespace penstock
