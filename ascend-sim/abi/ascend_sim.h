// What the simulated libascendcl exports beyond CANN's names, for the tests of
// whoever runs over it. Changes nothing of the simulation.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// By this symbol a program recognises that it runs on a simulated device.
const char* ascend_sim_version(void);

// Copies, as a JSON list of {"kind", "text"}, the reports since the last call
// into a buffer, and forgets them once all fit. Returns the bytes needed with
// the terminating zero.
size_t ascend_sim_take_reports(char* buffer, size_t bytes);

// Likewise the Chrome trace so far; forgets nothing.
size_t ascend_sim_trace(char* buffer, size_t bytes);

// Likewise, as a JSON list of strings, the executed tasks in their order.
size_t ascend_sim_schedule(char* buffer, size_t bytes);

#ifdef __cplusplus
}
#endif
