// See index.h.
#include "operators/index.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "operators/operand.h"
#include "operators/places.h"
#include "runtime/runtime.h"

namespace ascend_sim {
namespace {

using Positions = std::vector<std::int64_t>;  // in row-major order

// The indices counted from the front, or nothing if one is out of range.
std::optional<Positions> wrapped(const std::string& name, Positions indices,
                                 std::int64_t size) {
  for (std::int64_t& index : indices) {
    if (index < -size || index >= size) {
      Runtime::get().report("index-out-of-range",
                            name + ": index " + std::to_string(index) +
                                " is out of range for a dimension of size " +
                                std::to_string(size));
      return std::nullopt;
    }
    if (index < 0) index += size;
  }
  return indices;
}

void require_index(const std::string& name, const Tensor& index) {
  require_dtype(name, "index", index, {DType::kInt32, DType::kInt64});
}

// Which dimensions an indexing replaces, and where the index's own go.
struct Indexing {
  Sizes self_sizes;
  std::vector<std::optional<Tensor>> by_dimension;  // expanded to index_sizes
  Sizes index_sizes;
  std::size_t index_at = 0;  // of index_sizes within the result's
  Sizes result_sizes;
};

// Nothing where no index is given, or only empty ones.
std::optional<Indexing> plan(const std::string& name, const Tensor& self,
                             const std::vector<Tensor>& indices) {
  require(indices.size() <= self.sizes.size(), name,
          "takes at most " + std::to_string(self.sizes.size()) +
              " indices, got " + std::to_string(indices.size()));
  Indexing out;
  out.self_sizes = self.sizes;
  out.by_dimension.resize(self.sizes.size());
  std::vector<std::size_t> replaced;
  for (std::size_t d = 0; d < indices.size(); ++d) {
    if (indices[d].sizes == Sizes{0}) continue;
    require_index(name, indices[d]);
    out.index_sizes = broadcast_sizes(name, out.index_sizes, indices[d].sizes);
    replaced.push_back(d);
  }
  if (replaced.empty()) return std::nullopt;
  // Indices with a whole dimension between them put theirs in front.
  const bool adjacent =
      replaced.back() - replaced.front() + 1 == replaced.size();
  out.index_at = adjacent ? replaced.front() : 0;
  for (const std::size_t d : replaced) {
    out.by_dimension[d] = expand(indices[d], out.index_sizes);
  }
  for (std::size_t d = 0; d < self.sizes.size(); ++d) {
    if (!out.by_dimension[d]) out.result_sizes.push_back(self.sizes[d]);
  }
  out.result_sizes.insert(
      out.result_sizes.begin() + static_cast<std::ptrdiff_t>(out.index_at),
      out.index_sizes.begin(), out.index_sizes.end());
  return out;
}

// For each element of the indexing's result, where it is in self.
std::optional<Positions> positions(const std::string& name,
                                   const Indexing& indexing) {
  std::vector<Positions> values(indexing.self_sizes.size());
  for (std::size_t d = 0; d < values.size(); ++d) {
    const std::optional<Tensor>& index = indexing.by_dimension[d];
    if (!index) continue;
    auto read = wrapped(name, Bits(*index).read_all(), indexing.self_sizes[d]);
    if (!read) return std::nullopt;
    values[d] = std::move(*read);
  }
  Positions out(static_cast<std::size_t>(count_of(indexing.result_sizes)));
  const auto begin = static_cast<std::ptrdiff_t>(indexing.index_at);
  const auto end =
      begin + static_cast<std::ptrdiff_t>(indexing.index_sizes.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    Sizes rest =
        coordinates_of(static_cast<std::int64_t>(i), indexing.result_sizes);
    const Sizes in_index(rest.begin() + begin, rest.begin() + end);
    const auto which =
        static_cast<std::size_t>(position_of(in_index, indexing.index_sizes));
    rest.erase(rest.begin() + begin, rest.begin() + end);
    Sizes coordinates;
    auto next = rest.begin();
    for (std::size_t d = 0; d < values.size(); ++d) {
      coordinates.push_back(indexing.by_dimension[d] ? values[d][which]
                                                     : *next++);
    }
    out[i] = position_of(coordinates, indexing.self_sizes);
  }
  return out;
}

std::vector<Tensor> with(const Tensor& one, std::vector<Tensor> more) {
  std::erase_if(more, [](const Tensor& t) { return t.count() == 0; });
  more.push_back(one);
  return more;
}

}  // namespace

Task index_select(const std::string& name, const Tensor& self,
                  std::int64_t dimension, const Tensor& index,
                  const Tensor& out) {
  require_index(name, index);
  const std::int64_t at = dimension_of(name, dimension, self.rank());
  require(self.rank() > 0, name, "self must have a dimension");
  Sizes sizes = self.sizes;
  sizes.erase(sizes.begin() + at);
  sizes.insert(sizes.begin() + at, index.sizes.begin(), index.sizes.end());
  require_sizes(name, "the result", out, sizes);
  require_dtype(name, "the result", out, {self.dtype});
  Task task = moving_task(name, {self, index}, out);
  task.body = [=] {
    const std::int64_t length = self.sizes[static_cast<std::size_t>(at)];
    const auto chosen = wrapped(name, Bits(index).read_all(), length);
    if (!chosen) return Status::kVectorCoreException;
    // As if index had one dimension.
    const Bits target(as_bits(out));
    const auto count = static_cast<std::int64_t>(chosen->size());
    Sizes flat_sizes = self.sizes;
    flat_sizes[static_cast<std::size_t>(at)] = count;
    const Bits source(as_bits(self));
    for (std::int64_t i = 0; i < out.count(); ++i) {
      Sizes where = coordinates_of(i, flat_sizes);
      std::int64_t& along = where[static_cast<std::size_t>(at)];
      along = (*chosen)[static_cast<std::size_t>(along)];
      move_element(source, position_of(where, self.sizes), target, i);
    }
    return Status::kOk;
  };
  return task;
}

Task gather(const std::string& name, const Tensor& self, std::int64_t dimension,
            const Tensor& index, const Tensor& out) {
  require_index(name, index);
  const std::int64_t at = dimension_of(name, dimension, self.rank());
  require_sizes(name, "the result", out, index.sizes);
  require_dtype(name, "the result", out, {self.dtype});
  require(index.rank() == self.rank(), name,
          "index must have self's rank, got " + text_of(index.sizes));
  Task task = moving_task(name, {self, index}, out);
  task.body = [=] {
    const std::int64_t length =
        self.rank() == 0 ? 1 : self.sizes[static_cast<std::size_t>(at)];
    const auto chosen = wrapped(name, Bits(index).read_all(), length);
    if (!chosen) return Status::kVectorCoreException;
    const Bits source(as_bits(self));
    const Bits target(as_bits(out));
    for (std::int64_t i = 0; i < out.count(); ++i) {
      Sizes where = coordinates_of(i, out.sizes);
      if (!where.empty()) {
        where[static_cast<std::size_t>(at)] =
            (*chosen)[static_cast<std::size_t>(i)];
      }
      move_element(source, position_of(where, self.sizes), target, i);
    }
    return Status::kOk;
  };
  return task;
}

Task index(const std::string& name, const Tensor& self,
           const std::vector<Tensor>& indices, const Tensor& out) {
  const auto planned = plan(name, self, indices);
  const Indexing indexing = planned.value_or(Indexing{});
  require_sizes(name, "the result", out,
                planned || out.count() > 0 ? indexing.result_sizes : out.sizes);
  require_dtype(name, "the result", out, {self.dtype});
  Task task = moving_task(name, with(self, indices), out);
  if (!planned) return task;
  task.body = [=] {
    const auto sources = positions(name, indexing);
    if (!sources) return Status::kVectorCoreException;
    const Bits source(as_bits(self));
    const Bits target(as_bits(out));
    for (std::size_t i = 0; i < sources->size(); ++i) {
      move_element(source, (*sources)[i], target, static_cast<std::int64_t>(i));
    }
    return Status::kOk;
  };
  return task;
}

Task index_put(const std::string& name, const Tensor& self,
               const std::vector<Tensor>& indices, const Tensor& values) {
  const auto planned = plan(name, self, indices);
  if (!planned) return moving_task(name, {}, self);
  const Indexing& indexing = *planned;
  require(broadcast_sizes(name, indexing.result_sizes, values.sizes) ==
              indexing.result_sizes,
          name,
          "values' sizes must broadcast to " + text_of(indexing.result_sizes) +
              ", got " + text_of(values.sizes));
  require_dtype(name, "values", values, {self.dtype});
  Task task = moving_task(name, with(values, indices), self);
  task.body = [=] {
    const auto targets = positions(name, indexing);
    if (!targets) return Status::kVectorCoreException;
    const Bits source(as_bits(expand(values, indexing.result_sizes)));
    const Bits target(as_bits(self));
    for (std::size_t i = 0; i < targets->size(); ++i) {
      move_element(source, static_cast<std::int64_t>(i), target, (*targets)[i]);
    }
    return Status::kOk;
  };
  return task;
}

}  // namespace ascend_sim
