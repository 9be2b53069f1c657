// The public fused_add_rms_norm on drawn operands: what its header says is
// taken is, both exact aliases included, and has the scalar kernel's bits; all
// else is refused and nothing written.
#include "fused_add_rms_norm/support.h"
#include "fuzz/process.h"
#include "fuzz/rules.h"
#include "fuzz/scene.h"
#include "xllm_kernel/fused_add_rms_norm.h"

namespace xllm_kernel::fuzz {
namespace {

enum Place : std::size_t { kInput, kResidual, kWeight, kOutput, kSum };

// On any of those before it.
void maybe_lay(Draw& draw, std::size_t n, std::vector<Shape>* shapes) {
  if (!draw.one_in(8)) return;
  const std::int64_t last = static_cast<std::int64_t>(n) - 1;
  const auto other = static_cast<std::size_t>(draw.between(0, last));
  draw.lay_upon((*shapes)[other], &(*shapes)[n]);
}

std::vector<Shape> drawn(Draw& draw) {
  std::vector<Shape> shapes(5);
  shapes[kInput] = draw.rows("input");
  shapes[kResidual] = draw.like(shapes[kInput], "residual");
  shapes[kWeight] = draw.weight_of(shapes[kInput]);
  shapes[kOutput] = draw.like(shapes[kInput], "output");
  shapes[kSum] = draw.like(shapes[kInput], "sum");
  for (std::size_t n = 0; n < shapes.size(); ++n) shapes[n].memory = n;
  if (draw.one_in(3)) draw.lay_exactly_on(shapes[kInput], &shapes[kOutput]);
  if (draw.one_in(3)) draw.lay_exactly_on(shapes[kResidual], &shapes[kSum]);
  for (std::size_t n = 1; n < shapes.size(); ++n) maybe_lay(draw, n, &shapes);
  return shapes;
}

bool forms_refused(const std::vector<Shape>& of, double eps) {
  return !can_be_read(of[kInput], of[kWeight], eps) ||
         !is_like(of[kResidual], of[kInput]) ||
         !is_like(of[kOutput], of[kInput]) || !is_like(of[kSum], of[kInput]);
}

bool aliases_refused(const std::vector<Shape>& of) {
  const auto meet = [&](Place a, Place b) { return ranges_meet(of[a], of[b]); };
  return (meet(kOutput, kInput) && !is_same(of[kOutput], of[kInput])) ||
         (meet(kSum, kResidual) && !is_same(of[kSum], of[kResidual])) ||
         meet(kOutput, kSum) || meet(kOutput, kResidual) ||
         meet(kOutput, kWeight) || meet(kSum, kInput) || meet(kSum, kWeight);
}

Verdict verdict_on_both(const Shape& output, const Shape& sum) {
  const Verdict one = verdict_on_rows(output);
  const Verdict other = verdict_on_rows(sum);
  if (one == Verdict::kRefused || other == Verdict::kTaken) return one;
  return other;
}

void paint_expected(const Scene& scene, const std::vector<Shape>& of,
                    double eps, Image* image) {
  if (is_empty(of[kInput])) return;
  test::Tensor output = scene.blank(kOutput);
  test::Tensor sum = scene.blank(kSum);
  test::run_fused(scalar_kernel(simd::fused_add_rms_norm_variants(), of[kInput],
                                of[kWeight]),
                  output, sum, scene.dense(kInput), scene.dense(kResidual),
                  scene.dense(kWeight), eps);
  scene.paint(kSum, sum, image);
  scene.paint(kOutput, output, image);
}

void try_one(Draw draw) {
  const std::vector<Shape> of = drawn(draw);
  const double eps = draw.eps();
  const Threads on = threads(draw);
  Scene scene(of, flush(draw));
  scene.fill(draw);
  TensorView input;
  TensorView residual;
  TensorView weight;
  MutableTensorView output;
  MutableTensorView sum;
  if (!scene.make(kInput, &input) || !scene.make(kResidual, &residual) ||
      !scene.make(kWeight, &weight) || !scene.make(kOutput, &output) ||
      !scene.make(kSum, &sum)) {
    return;
  }
  const bool empty = is_empty(of[kInput]);
  Verdict verdict = Verdict::kRefused;
  if (!forms_refused(of, eps) && (empty || !aliases_refused(of))) {
    if (!scene.exists()) return;
    verdict = verdict_on_both(of[kOutput], of[kSum]);
  }
  scene.judge(
      verdict, [&](Image* image) { paint_expected(scene, of, eps, image); },
      [&] {
        return fused_add_rms_norm(output, sum, input, residual, weight, eps,
                                  on);
      });
}

}  // namespace
}  // namespace xllm_kernel::fuzz

extern "C" int LLVMFuzzerInitialize(int* /*count*/, char*** /*arguments*/) {
  xllm_kernel::fuzz::require_level();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes,
                                      std::size_t size) {
  xllm_kernel::fuzz::try_one(xllm_kernel::fuzz::Draw(bytes, size));
  return 0;
}
