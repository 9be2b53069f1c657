// What calls of the simulated runtime return: the codes that CANN documents.
// Holds numbers and no behaviour.
#pragma once

#include <cstdint>

namespace ascend_sim {

// Values as in CANN's acl_base_rt.h and error_codes/rt_error_codes.h.
enum class Status : std::int32_t {
  kOk = 0,
  kRepeatInitialize = 100002,
  kInvalidParam = 107000,
  kInvalidDevice = 107001,
  // A stream of another device than the calling thread's current one.
  kStreamContext = 107003,
  // An event that was never recorded, or not yet reached.
  kEventTimestampInvalid = 107006,
  kEventTimestampReversal = 107007,
  kInvalidHandle = 107017,
  kTimeout = 107019,
  // A wait, in a capture, for work outside of it.
  kCaptureDependency = 107024,
  kStreamUnjoined = 107025,
  kModelCaptured = 107026,
  // A synchronisation, or another forbidden call, on a stream that captures.
  kStreamCaptured = 107027,
  kEventCaptured = 107028,
  kStreamNotCaptured = 107029,
  // A call that the capture's mode forbids in this thread.
  kCaptureModeForbids = 107030,
  // The default stream in a capture.
  kCaptureImplicit = 107031,
  // Two captures that depend on each other.
  kCaptureConflict = 107032,
  kCaptureUnmatched = 107036,
  kModelRunning = 107037,
  kCaptureWrongThread = 107038,
  // An asynchronous copy that would block, where the capture's mode forbids it.
  kCaptureBlocksAsync = 107041,
  kUnsupported = 207000,
  kOutOfMemory = 207001,
  kMemoryFree = 207002,
  kInternal = 507000,
  kStreamNotComplete = 507004,
  kModelExecute = 507011,
  // An asynchronous operation failed: sticky from then on.
  kVectorCoreException = 507035,
  kSyncTimeout = 507046,
  kEventSyncTimeout = 507047,
  kCaptureInvalidated = 507903,
};

}  // namespace ascend_sim
