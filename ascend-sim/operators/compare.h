// Operators that compare two tensors as a whole or closely. Decides on no
// tolerance.
#pragma once

#include <string>

#include "operators/tensor.h"

namespace ascend_sim {

// One bool: whether all elements equal each other. A NaN equals nothing.
[[nodiscard]] Task equal(const std::string& name, const Tensor& self,
                         const Tensor& other, const Tensor& out);

struct Closeness {
  double relative = 0;
  double absolute = 0;
  bool nan_is_close = false;
};
// Whether |self - other| <= absolute + |relative * other|, element by element.
[[nodiscard]] Task is_close(const std::string& name, const Tensor& self,
                            const Tensor& other, const Closeness& closeness,
                            const Tensor& out);

}  // namespace ascend_sim
