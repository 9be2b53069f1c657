// See rms_norm.h.
#include "operators/rms_norm.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "operators/accumulate.h"
#include "operators/elements.h"
#include "operators/elementwise.h"
#include "operators/operand.h"

namespace ascend_sim {
namespace {

// What the vendor's operator asks for changes with its tiling; ours needs none,
// but whoever calls must be able to provide it.
constexpr std::uint64_t kWorkspaceBytes = 4096;

// gamma's sizes must be x's last ones; the result is x's sizes with those 1.
Sizes norm_sizes(const std::string& name, const Tensor& x,
                 const Tensor& gamma) {
  const std::size_t skip =
      x.sizes.size() - std::min(x.sizes.size(), gamma.sizes.size());
  require(!gamma.sizes.empty() && gamma.sizes.size() <= x.sizes.size() &&
              std::equal(gamma.sizes.begin(), gamma.sizes.end(),
                         x.sizes.begin() + static_cast<std::ptrdiff_t>(skip)),
          name,
          "gamma's sizes must be the last ones of x " + text_of(x.sizes) +
              ", got " + text_of(gamma.sizes));
  Sizes sizes = x.sizes;
  std::fill(sizes.begin() + static_cast<std::ptrdiff_t>(skip), sizes.end(), 1);
  return sizes;
}

void require_same_dtype(const std::string& name, const std::string& operand,
                        const Tensor& tensor, DType dtype) {
  require(tensor.dtype == dtype, name,
          operand + " must be " + name_of(dtype) + ", got " +
              name_of(tensor.dtype));
}

void compute(const RmsNormOperands& o) {
  const auto gamma = Elements<float>(o.gamma).read_all();
  const auto width = static_cast<std::int64_t>(gamma.size());
  const Elements<float> xs(o.x);
  const Elements<float> ys(o.y);
  const Elements<float> rstds(o.rstd);
  const auto epsilon = static_cast<float>(o.epsilon);
  std::vector<float> row(gamma.size());
  for (std::int64_t i = 0; i < o.rstd.count(); ++i) {
    xs.read(i * width, row);
    const float squares =
        sum_of(std::span<const float>(row), [](float v) { return v * v; });
    const float mean = squares / static_cast<float>(width);
    const float rstd = 1.0F / std::sqrt(mean + epsilon);
    for (std::size_t k = 0; k < row.size(); ++k) {
      row[k] = row[k] * rstd * gamma[k];
    }
    ys.write(i * width, row);
    rstds.write(i, std::span<const float>(&rstd, 1));
  }
}

Task norm_task(const std::string& name, const RmsNormOperands& o) {
  Task task;
  task.name = name;
  declare(task, o.x, AccessKind::kRead);
  declare(task, o.gamma, AccessKind::kRead);
  declare(task, o.y, AccessKind::kWrite);
  declare(task, o.rstd, AccessKind::kWrite);
  task.body = [o] {
    compute(o);
    return Status::kOk;
  };
  return task;
}

}  // namespace

Executor rms_norm(const RmsNormOperands& o) {
  const std::string name = "aclnnRmsNorm";
  require_dtype(name, "x", o.x,
                {DType::kFloat32, DType::kFloat16, DType::kBfloat16});
  require(o.gamma.dtype == o.x.dtype || o.gamma.dtype == DType::kFloat32, name,
          "gamma must be " + name_of(o.x.dtype) + " or float32, got " +
              name_of(o.gamma.dtype));
  const Sizes rstd_sizes = norm_sizes(name, o.x, o.gamma);
  require_same_dtype(name, "y", o.y, o.x.dtype);
  require_sizes(name, "y", o.y, o.x.sizes);
  require_same_dtype(name, "rstd", o.rstd, DType::kFloat32);
  require_sizes(name, "rstd", o.rstd, rstd_sizes);
  return {norm_task(name, o), kWorkspaceBytes};
}

Executor add_rms_norm(const AddRmsNormOperands& o) {
  const std::string name = "aclnnAddRmsNorm";
  require_dtype(name, "x1", o.x1,
                {DType::kFloat32, DType::kFloat16, DType::kBfloat16});
  require(o.x1.count() > 0, name,
          "x1 must not be empty, got " + text_of(o.x1.sizes));
  for (const auto& [operand, tensor] :
       {std::pair{"x2", &o.x2}, {"y", &o.y}, {"x", &o.x}}) {
    require_same_dtype(name, operand, *tensor, o.x1.dtype);
    require_sizes(name, operand, *tensor, o.x1.sizes);
  }
  require_same_dtype(name, "gamma", o.gamma, o.x1.dtype);
  const Sizes rstd_sizes = norm_sizes(name, o.x1, o.gamma);
  require_same_dtype(name, "rstd", o.rstd, DType::kFloat32);
  require_sizes(name, "rstd", o.rstd, rstd_sizes);

  const Task add = elementwise(
      name, "Add", {o.x1, o.x2, Scalar{std::int64_t{1}, DType::kInt64}}, o.x);
  Task task = norm_task(name, {o.x, o.gamma, o.epsilon, o.y, o.rstd});
  task.accesses.insert(task.accesses.end(), add.accesses.begin(),
                       add.accesses.end());
  task.body = [sum = add.body, norm = task.body] {
    const Status status = sum();
    return status == Status::kOk ? norm() : status;
  };
  return {std::move(task), kWorkspaceBytes};
}

}  // namespace ascend_sim
