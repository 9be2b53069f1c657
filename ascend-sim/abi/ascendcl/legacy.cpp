// Exports of libascendcl that torch_npu links for operators without an aclnn
// symbol, for dumps and for kernels from files. Runs none of it: such an
// operator is refused when it is submitted.
#include <cstdint>
#include <string>
#include <vector>

#include "abi/ascendcl/calls.h"

using ascend_sim::Status;
using ascend_sim::abi::missing;
using ascend_sim::abi::refuse;
using ascend_sim::abi::unsupported;

struct aclTensorDesc {
  aclDataType dtype = ACL_DT_UNDEFINED;
  aclFormat format = ACL_FORMAT_UNDEFINED;
  std::vector<std::int64_t> sizes;
};

struct aclDataBuffer {};
struct aclopAttr {};

extern "C" {

aclTensorDesc* aclCreateTensorDesc(aclDataType dtype, int rank,
                                   const std::int64_t* sizes,
                                   aclFormat format) {
  return new aclTensorDesc{dtype, format, {sizes, sizes + rank}};
}

void aclDestroyTensorDesc(const aclTensorDesc* description) {
  delete description;
}

aclDataType aclGetTensorDescType(const aclTensorDesc* description) {
  return description->dtype;
}

aclFormat aclGetTensorDescFormat(const aclTensorDesc* description) {
  return description->format;
}

std::size_t aclGetTensorDescNumDims(const aclTensorDesc* description) {
  return description->sizes.size();
}

aclError aclGetTensorDescDimV2(const aclTensorDesc* description,
                               std::size_t index, std::int64_t* size) {
  if (size == nullptr) return missing("aclGetTensorDescDimV2", "dimSize");
  if (index >= description->sizes.size()) {
    return refuse(Status::kInvalidParam, "aclGetTensorDescDimV2",
                  "no dimension " + std::to_string(index));
  }
  *size = description->sizes[index];
  return ACL_SUCCESS;
}

// What describes an operand of an operator that is going to be refused is not
// kept.

void aclSetTensorDescName(aclTensorDesc*, const char*) {}

aclError aclSetTensorFormat(aclTensorDesc*, aclFormat) { return ACL_SUCCESS; }

aclError aclSetTensorPlaceMent(aclTensorDesc*, aclMemType) {
  return ACL_SUCCESS;
}

aclError aclSetTensorShape(aclTensorDesc*, int, const std::int64_t*) {
  return ACL_SUCCESS;
}

aclDataBuffer* aclCreateDataBuffer(void*, std::size_t) {
  return new aclDataBuffer;
}

aclError aclDestroyDataBuffer(const aclDataBuffer* buffer) {
  delete buffer;
  return ACL_SUCCESS;
}

aclopAttr* aclopCreateAttr() { return new aclopAttr; }

void aclopDestroyAttr(const aclopAttr* attributes) { delete attributes; }

aclError aclopSetAttrBool(aclopAttr*, const char*, std::uint8_t) {
  return ACL_SUCCESS;
}

aclError aclopSetAttrInt(aclopAttr*, const char*, std::int64_t) {
  return ACL_SUCCESS;
}

aclError aclopSetAttrFloat(aclopAttr*, const char*, float) {
  return ACL_SUCCESS;
}

aclError aclopSetAttrString(aclopAttr*, const char*, const char*) {
  return ACL_SUCCESS;
}

aclError aclopSetAttrDataType(aclopAttr*, const char*, aclDataType) {
  return ACL_SUCCESS;
}

aclError aclopSetAttrListBool(aclopAttr*, const char*, int,
                              const std::uint8_t*) {
  return ACL_SUCCESS;
}

aclError aclopSetAttrListInt(aclopAttr*, const char*, int,
                             const std::int64_t*) {
  return ACL_SUCCESS;
}

aclError aclopSetAttrListFloat(aclopAttr*, const char*, int, const float*) {
  return ACL_SUCCESS;
}

aclError aclopSetAttrListListInt(aclopAttr*, const char*, int, const int*,
                                 const std::int64_t* const[]) {
  return ACL_SUCCESS;
}

// Dumps and kernels from files are not simulated.

aclError aclmdlInitDump() { return unsupported("aclmdlInitDump"); }

aclError aclmdlSetDump(const char*) { return unsupported("aclmdlSetDump"); }

aclError aclmdlFinalizeDump() { return unsupported("aclmdlFinalizeDump"); }

aclError aclrtBinaryLoadFromData(const void*, std::size_t,
                                 const aclrtBinaryLoadOptions*,
                                 aclrtBinHandle*) {
  return unsupported("aclrtBinaryLoadFromData");
}

aclError aclrtBinaryGetFunction(const aclrtBinHandle, const char*,
                                aclrtFuncHandle*) {
  return unsupported("aclrtBinaryGetFunction");
}

aclError aclrtGetFunctionAddr(aclrtFuncHandle, void**, void**) {
  return unsupported("aclrtGetFunctionAddr");
}

}  // extern "C"
