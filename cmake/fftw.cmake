# FFTW, in float and in double: its packages for CMake name paths that Debian does not install, so the files are looked for.
find_path(ATTN_FFTW_INCLUDE fftw3.h REQUIRED)
find_library(ATTN_FFTW_FLOAT fftw3f REQUIRED)
find_library(ATTN_FFTW_DOUBLE fftw3 REQUIRED)
