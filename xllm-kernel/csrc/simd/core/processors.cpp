// Reads the affinity mask and the files of the control groups. An unreadable or
// odd file grants everything, as having none does.
#include "simd/core/processors.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <cstdio>
#include <cstring>
#include <system_error>

namespace xllm_kernel::simd {

namespace {

using Path = std::array<char, PATH_MAX>;

// Puts one text after the other; false if the path is too long.
bool join(Path* path, const char* folder, const char* rest) noexcept {
  const int length =
      std::snprintf(path->data(), path->size(), "%s%s", folder, rest);
  return length >= 0 && static_cast<std::size_t>(length) < path->size();
}

// Reads the first line of a file, without its end; false if there is none.
template <std::size_t kSize>
bool read_line(const char* path, std::array<char, kSize>* line) noexcept {
  std::FILE* const file = std::fopen(path, "re");
  if (file == nullptr) return false;
  const bool read = std::fgets(line->data(), kSize, file) != nullptr;
  std::fclose(file);
  if (read) (*line)[std::strcspn(line->data(), "\n")] = '\0';
  return read;
}

// Takes a number off the front of a text, with a blank before it if any.
bool take_number(const char** text, std::int64_t* number) noexcept {
  if (**text == ' ') ++*text;
  const char* const end = *text + std::strlen(*text);
  const auto [rest, error] = std::from_chars(*text, end, *number);
  *text = rest;
  return error == std::errc();
}

int processors(std::int64_t quota, std::int64_t period) noexcept {
  if (quota <= 0 || period <= 0) return kNoQuota;
  const std::int64_t whole = (quota - 1) / period + 1;
  return static_cast<int>(std::min<std::int64_t>(whole, kNoQuota));
}

// "max 100000" or "150000 100000".
int quota_of_version_2(const char* folder) noexcept {
  Path path;
  std::array<char, 64> line;
  if (!join(&path, folder, "/cpu.max") || !read_line(path.data(), &line)) {
    return kNoQuota;
  }
  const char* text = line.data();
  std::int64_t quota = 0;
  std::int64_t period = 0;
  const bool read = take_number(&text, &quota) && take_number(&text, &period);
  return read ? processors(quota, period) : kNoQuota;
}

std::int64_t number_in(const char* folder, const char* name) noexcept {
  Path path;
  std::array<char, 64> line;
  if (!join(&path, folder, name) || !read_line(path.data(), &line)) return -1;
  const char* text = line.data();
  std::int64_t value = 0;
  return take_number(&text, &value) ? value : -1;
}

int quota_of_version_1(const char* folder) noexcept {
  return processors(number_in(folder, "/cpu.cfs_quota_us"),
                    number_in(folder, "/cpu.cfs_period_us"));
}

// The least of a group and those above it, up to `mount`.
template <class Quota>
int least_on_the_way_up(const char* mount, const char* group,
                        const Quota& quota) noexcept {
  Path folder;
  if (!join(&folder, mount, group)) return kNoQuota;
  int least = kNoQuota;
  const std::size_t top = std::strlen(mount);
  while (true) {
    least = std::min(least, quota(folder.data()));
    char* const slash = std::strrchr(folder.data(), '/');
    if (std::strlen(folder.data()) <= top || slash == nullptr) return least;
    *slash = '\0';
  }
}

// Whether a comma-separated list holds "cpu".
bool lists_cpu(const char* list, std::size_t length) noexcept {
  const char* const end = list + length;
  while (list < end) {
    const char* const comma = std::find(list, end, ',');
    if (comma - list == 3 && std::memcmp(list, "cpu", 3) == 0) return true;
    list = comma + 1;
  }
  return false;
}

}  // namespace

int affinity_count() noexcept {
  // Machines with more processors than the fixed mask holds need a larger one.
  for (int size = 1024; size <= 1 << 20; size *= 4) {
    cpu_set_t* const mask = CPU_ALLOC(static_cast<std::size_t>(size));
    if (mask == nullptr) return 1;
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(size));
    const int status = sched_getaffinity(0, bytes, mask);
    const int count = status == 0 ? CPU_COUNT_S(bytes, mask) : 0;
    CPU_FREE(mask);
    if (count > 0) return count;
  }
  return 1;
}

int quota_count(const char* proc, const char* sys) noexcept {
  Path path;
  if (!join(&path, proc, "/self/cgroup")) return kNoQuota;
  std::FILE* const file = std::fopen(path.data(), "re");
  if (file == nullptr) return kNoQuota;
  int least = kNoQuota;
  // "0::/group" (version 2) or "4:cpu,cpuacct:/group".
  Path line;
  while (std::fgets(line.data(), static_cast<int>(line.size()), file) !=
         nullptr) {
    line[std::strcspn(line.data(), "\n")] = '\0';
    char* const controllers = std::strchr(line.data(), ':');
    char* const group =
        controllers == nullptr ? nullptr : std::strchr(controllers + 1, ':');
    if (group == nullptr) continue;
    const auto length = static_cast<std::size_t>(group - controllers - 1);
    *group = '\0';
    Path root;
    Path mount;
    if (!join(&root, sys, "/fs/cgroup/")) continue;
    if (length == 0) {
      root[std::strlen(root.data()) - 1] = '\0';
      least = std::min(least, least_on_the_way_up(root.data(), group + 1,
                                                  quota_of_version_2));
    } else if (lists_cpu(controllers + 1, length) &&
               join(&mount, root.data(), controllers + 1)) {
      least = std::min(least, least_on_the_way_up(mount.data(), group + 1,
                                                  quota_of_version_1));
    }
  }
  std::fclose(file);
  return least;
}

}  // namespace xllm_kernel::simd
