// See index.h.
#include "operators/index.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "operators/elements.h"
#include "operators/operand.h"
#include "runtime/runtime.h"

namespace ascend_sim {
namespace {

using Positions = std::vector<std::int64_t>;  // in row-major order
using Bits = Elements<std::int64_t>;

Task index_task(const std::string& name, const std::vector<Tensor>& read,
                const Tensor& written) {
  Task task;
  task.name = name;
  for (const Tensor& tensor : read) {
    require_simulated(name, tensor);
    declare(task, tensor, AccessKind::kRead);
  }
  require_simulated(name, written);
  declare(task, written, AccessKind::kWrite);
  return task;
}

void require_index(const std::string& name, const Tensor& index) {
  require_dtype(name, "index", index, {DType::kInt32, DType::kInt64});
}

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

Sizes coordinates_of(std::int64_t position, const Sizes& sizes) {
  Sizes out(sizes.size());
  for (std::size_t d = sizes.size(); d-- > 0;) {
    out[d] = position % sizes[d];
    position /= sizes[d];
  }
  return out;
}

std::int64_t position_of(const Sizes& coordinates, const Sizes& sizes) {
  std::int64_t position = 0;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    position = position * sizes[d] + coordinates[d];
  }
  return position;
}

void move_element(const Bits& from, std::int64_t source, const Bits& to,
                  std::int64_t target) {
  std::int64_t bits = 0;
  from.read(source, std::span<std::int64_t>(&bits, 1));
  to.write(target, std::span<const std::int64_t>(&bits, 1));
}

void move_all(const Tensor& from, const Tensor& to) {
  Bits(as_bits(to)).write(0, Bits(as_bits(from)).read_all());
}

Tensor narrowed(const Tensor& tensor, std::int64_t dimension,
                std::int64_t start, std::int64_t length) {
  Tensor out = tensor;
  const auto at = static_cast<std::size_t>(dimension);
  out.address +=
      static_cast<Address>(start * tensor.strides[at]) * size_of(tensor.dtype);
  out.sizes[at] = length;
  return out;
}

// Which dimensions an indexing replaces, and where the index's own go.
struct Indexing {
  Sizes self_sizes;
  std::vector<std::optional<Tensor>> by_dimension;  // expanded to index_sizes
  Sizes index_sizes;
  std::size_t index_at = 0;  // of index_sizes within the result's
  Sizes result_sizes;
};

Indexing plan(const std::string& name, const Tensor& self,
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
    const auto both = broadcast(out.index_sizes, indices[d].sizes);
    require(both.has_value(), name, "the indices' sizes must broadcast");
    out.index_sizes = *both;
    replaced.push_back(d);
  }
  require(!replaced.empty(), name, "needs an index");
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
    if (!indexing.by_dimension[d]) continue;
    auto read = wrapped(name, Bits(*indexing.by_dimension[d]).read_all(),
                        indexing.self_sizes[d]);
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

Task concatenate(const std::string& name, const std::vector<Tensor>& tensors,
                 std::int64_t dimension, const Tensor& out) {
  const std::int64_t at = dimension_of(name, dimension, out.rank());
  std::int64_t total = 0;
  std::vector<std::pair<Tensor, Tensor>> moves;
  for (const Tensor& tensor : tensors) {
    if (tensor.sizes == Sizes{0}) continue;
    Sizes sizes = out.sizes;
    require(tensor.rank() == out.rank(), name,
            "all tensors must have the result's rank");
    const std::int64_t length = tensor.sizes[static_cast<std::size_t>(at)];
    sizes[static_cast<std::size_t>(at)] = length;
    require_sizes(name, "a tensor", tensor, sizes);
    require_dtype(name, "a tensor", tensor, {out.dtype});
    moves.emplace_back(tensor, narrowed(out, at, total, length));
    total += length;
  }
  require(total == out.sizes[static_cast<std::size_t>(at)], name,
          "the result must have " + std::to_string(total) + " along dim, got " +
              text_of(out.sizes));
  Task task = index_task(name, tensors, out);
  task.body = [moves = std::move(moves)] {
    for (const auto& [from, to] : moves) move_all(from, to);
    return Status::kOk;
  };
  return task;
}

Task stack(const std::string& name, const std::vector<Tensor>& tensors,
           std::int64_t dimension, const Tensor& out) {
  const std::int64_t at = dimension_of(name, dimension, out.rank());
  std::vector<Tensor> unsqueezed;
  for (Tensor tensor : tensors) {
    require(tensor.rank() + 1 == out.rank(), name,
            "all tensors must have one dimension less than the result");
    tensor.sizes.insert(tensor.sizes.begin() + at, 1);
    tensor.strides.insert(tensor.strides.begin() + at, 0);
    unsqueezed.push_back(std::move(tensor));
  }
  return concatenate(name, unsqueezed, at, out);
}

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
  Task task = index_task(name, {self, index}, out);
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
  Task task = index_task(name, {self, index}, out);
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
  const Indexing indexing = plan(name, self, indices);
  require_sizes(name, "the result", out, indexing.result_sizes);
  require_dtype(name, "the result", out, {self.dtype});
  Task task = index_task(name, with(self, indices), out);
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
  const Indexing indexing = plan(name, self, indices);
  const auto fits = broadcast(indexing.result_sizes, values.sizes);
  require(fits && *fits == indexing.result_sizes, name,
          "values' sizes must broadcast to " + text_of(indexing.result_sizes) +
              ", got " + text_of(values.sizes));
  require_dtype(name, "values", values, {self.dtype});
  Task task = index_task(name, with(values, indices), self);
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

Task masked_select(const std::string& name, const Tensor& self,
                   const Tensor& mask, const Tensor& out) {
  const auto sizes = broadcast(self.sizes, mask.sizes);
  require(sizes.has_value(), name, "self's and mask's sizes must broadcast");
  require_dtype(name, "mask", mask, {DType::kBool, DType::kUint8});
  require_dtype(name, "the result", out, {self.dtype});
  require_sizes(name, "the result", out, {count_of(*sizes)});
  Task task = index_task(name, {self, mask}, out);
  task.body = [=] {
    const auto chosen = Bits(expand(mask, *sizes)).read_all();
    const Bits source(as_bits(expand(self, *sizes)));
    const Bits target(as_bits(out));
    std::int64_t count = 0;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      if (chosen[i] == 0) continue;
      move_element(source, static_cast<std::int64_t>(i), target, count++);
    }
    *out.found = {count};
    return Status::kOk;
  };
  return task;
}

Task nonzero(const std::string& name, const Tensor& self, NonzeroForm form,
             const Tensor& out) {
  require_dtype(name, "the result", out, {DType::kInt64});
  require(out.count() == self.rank() * self.count(), name,
          "the result must have room for every element's indices, got " +
              text_of(out.sizes));
  Task task = index_task(name, {self}, out);
  task.body = [=] {
    const auto values = Elements<double>(self).read_all();
    Positions found;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] != 0) found.push_back(static_cast<std::int64_t>(i));
    }
    const auto count = static_cast<std::int64_t>(found.size());
    const bool rows = form == NonzeroForm::kRows;
    Tensor dense = out;  // the results lie one behind the other
    dense.sizes = {self.rank() * count};
    dense.strides = {1};
    const Bits results(dense);
    for (std::int64_t i = 0; i < count; ++i) {
      const Sizes where =
          coordinates_of(found[static_cast<std::size_t>(i)], self.sizes);
      for (std::int64_t d = 0; d < self.rank(); ++d) {
        results.write(rows ? i * self.rank() + d : d * count + i,
                      std::span<const std::int64_t>(
                          &where[static_cast<std::size_t>(d)], 1));
      }
    }
    *out.found = rows ? Sizes{count, self.rank()} : Sizes{self.rank(), count};
    return Status::kOk;
  };
  return task;
}

}  // namespace ascend_sim
