// The instruction sets that Highway compiles the kernels for: scalar code, AVX2 and AVX-512 on x86;
// NEON on Arm. The .cc files of kernels include this header before any header of Highway.
#pragma once

#define HWY_COMPILE_ALL_ATTAINABLE  // scalar code too, with any -march
// A build for one machine without AVX-512 does not compile for it.
#if defined(ATTN_NATIVE) && defined(__x86_64__) && !defined(__AVX512F__)
#define ATTN_LACKED_TARGETS (HWY_AVX3)
#else
#define ATTN_LACKED_TARGETS 0
#endif
// SSE is not worth its compile time. Sizeless SVE and RVV vectors cannot be array elements.
// Variants of AVX-512 and NEON use the code of the base set. Names that older versions of Highway
// lack are 0 in preprocessor conditions; they are defined as 0 below for all other uses.
#define HWY_DISABLED_TARGETS                                                                       \
  (ATTN_LACKED_TARGETS | HWY_SSE2 | HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_AVX3_ZEN4 |           \
   HWY_AVX3_SPR | HWY_AVX10_2 | HWY_AVX10_2_512 | HWY_NEON_WITHOUT_AES | HWY_NEON_BF16 | HWY_SVE | \
   HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#include <hwy/detect_targets.h>
#ifndef HWY_SSE2
#define HWY_SSE2 0
#endif
#ifndef HWY_AVX3_ZEN4
#define HWY_AVX3_ZEN4 0
#endif
#ifndef HWY_AVX3_SPR
#define HWY_AVX3_SPR 0
#endif
#ifndef HWY_AVX10_2
#define HWY_AVX10_2 0
#endif
#ifndef HWY_AVX10_2_512
#define HWY_AVX10_2_512 0
#endif
#ifndef HWY_NEON_WITHOUT_AES
#define HWY_NEON_WITHOUT_AES 0
#endif
#ifndef HWY_NEON_BF16
#define HWY_NEON_BF16 0
#endif
