# What transforms in long convolutions and `fnet` (variants/convolution/fft.h). FFTW is under the GPL, and so is a binary that holds it;
# `builtin` is this project's own and Eigen's, and what wheels are built with (pyproject.toml).
set(ATTN_FFT fftw CACHE STRING "what computes Fourier transforms: fftw, which is under the GPL, or builtin")
if(NOT ATTN_FFT MATCHES "^(fftw|builtin)$")
  message(FATAL_ERROR "ATTN_FFT is \"${ATTN_FFT}\": fftw or builtin")
endif()
set(ATTN_FFT_LIBRARIES)
if(ATTN_FFT STREQUAL "fftw") # in float and in double; its packages for CMake name paths that Debian does not install
  find_path(ATTN_FFTW_INCLUDE fftw3.h REQUIRED)
  find_library(ATTN_FFTW_FLOAT fftw3f REQUIRED)
  find_library(ATTN_FFTW_DOUBLE fftw3 REQUIRED)
  set(ATTN_FFT_LIBRARIES ${ATTN_FFTW_FLOAT} ${ATTN_FFTW_DOUBLE})
endif()
