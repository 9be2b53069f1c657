// A library that torch_npu names as a dependency and takes nothing from.
// Exports nothing.
