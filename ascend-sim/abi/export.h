// How a symbol that no header of CANN's declares is exported. Declares none.
#pragma once

#define ASCEND_SIM_EXPORT extern "C" __attribute__((visibility("default")))
