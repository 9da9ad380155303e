#pragma once
// As algorithm.h.
