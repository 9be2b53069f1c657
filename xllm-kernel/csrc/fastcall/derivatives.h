// Named errors where a derivative is wanted of an operator that defines none.
// Knows no operator; needs one exact torch.
#pragma once

#include <string>

namespace xllm_kernel::fastcall {

// Puts a kernel before all others of the package's operator `name` that refuses
// such calls, in the name of `who`, and hands on the rest. For the life of the
// process. Throws what torch throws.
void refuse_derivatives(const std::string& name, const std::string& who);

}  // namespace xllm_kernel::fastcall
