// The public rms_norm on drawn operands: what its header says is taken is, and
// has the scalar kernel's bits; all else is refused and nothing written.
#include "fuzz/process.h"
#include "fuzz/rules.h"
#include "fuzz/scene.h"
#include "rms_norm/support.h"
#include "xllm_kernel/rms_norm.h"

namespace xllm_kernel::fuzz {
namespace {

enum Place : std::size_t { kInput, kWeight, kOutput };

std::vector<Shape> drawn(Draw& draw) {
  std::vector<Shape> shapes(3);
  shapes[kInput] = draw.rows("input");
  shapes[kWeight] = draw.weight_of(shapes[kInput]);
  shapes[kOutput] = draw.like(shapes[kInput], "output");
  for (std::size_t n = 0; n < shapes.size(); ++n) shapes[n].memory = n;
  if (draw.one_in(6)) draw.lay_upon(shapes[kInput], &shapes[kOutput]);
  if (draw.one_in(12)) draw.lay_upon(shapes[kWeight], &shapes[kOutput]);
  if (draw.one_in(12)) draw.lay_upon(shapes[kInput], &shapes[kWeight]);
  return shapes;
}

bool refused(const std::vector<Shape>& of, double eps) {
  return !can_be_read(of[kInput], of[kWeight], eps) ||
         !is_like(of[kOutput], of[kInput]) ||
         (!is_empty(of[kInput]) && (ranges_meet(of[kOutput], of[kInput]) ||
                                    ranges_meet(of[kOutput], of[kWeight])));
}

void paint_expected(const Scene& scene, const std::vector<Shape>& of,
                    double eps, Image* image) {
  if (is_empty(of[kInput])) return;
  test::Tensor output = scene.blank(kOutput);
  test::run_kernel(
      scalar_kernel(simd::rms_norm_variants(), of[kInput], of[kWeight]), output,
      scene.dense(kInput), scene.dense(kWeight), eps);
  scene.paint(kOutput, output, image);
}

void try_one(Draw draw) {
  const std::vector<Shape> of = drawn(draw);
  const double eps = draw.eps();
  const Threads on = threads(draw);
  Scene scene(of, flush(draw));
  scene.fill(draw);
  TensorView input;
  TensorView weight;
  MutableTensorView output;
  if (!scene.make(kInput, &input) || !scene.make(kWeight, &weight) ||
      !scene.make(kOutput, &output)) {
    return;
  }
  Verdict verdict = Verdict::kRefused;
  if (!refused(of, eps)) {
    if (!scene.exists()) return;
    verdict = verdict_on_rows(of[kOutput]);
  }
  scene.judge(
      verdict, [&](Image* image) { paint_expected(scene, of, eps, image); },
      [&] { return rms_norm(output, input, weight, eps, on); });
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
