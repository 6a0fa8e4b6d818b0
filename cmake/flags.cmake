# The compiler cache, where it is installed: it sees paths below the source folder as relative, so that another clone of the
# same sources finds what this one compiled, and trusts precompiled headers. -DATTN_CCACHE= goes without;
# another launcher that was asked for is kept.
find_program(ATTN_CCACHE ccache)
if(ATTN_CCACHE AND (NOT CMAKE_CXX_COMPILER_LAUNCHER OR CMAKE_CXX_COMPILER_LAUNCHER STREQUAL "ccache"))
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_SLOPPINESS=pch_defines,time_macros
    CCACHE_NOHASHDIR=1 ${ATTN_CCACHE})
endif()

# The one INTERFACE target that holds every flag: mixing Eigen's alignment flags between files corrupts memory.
set(ATTN_ARCH "x86-64-v2" CACHE STRING "value of -march; empty leaves the compiler's default")
set(ATTN_SANITIZE "" CACHE STRING "value of -fsanitize, for example address,undefined")
set(ATTN_NO_SANITIZE "" CACHE STRING "value of -fno-sanitize: what of it to leave out")
option(ATTN_WERROR "warnings are errors" OFF)

add_library(attn_flags INTERFACE)
target_include_directories(attn_flags INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include/attnbench>)
target_compile_options(attn_flags INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor
  -Wno-missing-field-initializers # a member left out of a designated initialiser means its default
  -ffp-contract=off # same bits from every compiler; kernels that want FMA ask for it
  $<$<BOOL:${ATTN_WERROR}>:-Werror>
  -fno-math-errno # nobody reads errno after mathematics, and with it square roots are not vectorised
  -fno-trapping-math # nobody reads floating-point exception flags, and loops with selects vectorise
  -fPIC -fno-semantic-interposition # the Python extension links the same objects, and calls stay direct: docs/python.md
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>            # false in g++ 12's std::string operator+ (GCC bug 105651)
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-stringop-overflow> # the same bug, where headers are precompiled
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized> # false in g++ 12's AVX-512 intrinsics under Eigen 3.4
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-uninitialized> # the same, for some processors
  $<$<CXX_COMPILER_ID:Clang>:-Wno-pass-failed>)      # not every loop marked for vectorising can be
if(ATTN_ARCH AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_options(attn_flags INTERFACE -march=${ATTN_ARCH})
elseif(ATTN_ARCH STREQUAL "native")
  target_compile_options(attn_flags INTERFACE -mcpu=native)
endif()
# All splitting over threads is in core/base/parallel.cc; Eigen's own would fight with it.
target_compile_definitions(attn_flags INTERFACE EIGEN_DONT_PARALLELIZE
  $<$<CONFIG:Debug>:ATTN_DEBUG>)
if(ATTN_SANITIZE)
  target_compile_options(attn_flags INTERFACE -fsanitize=${ATTN_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  if(ATTN_NO_SANITIZE)
    target_compile_options(attn_flags INTERFACE -fno-sanitize=${ATTN_NO_SANITIZE})
  endif()
  # Of a target with the property ATTN_HEAP_ALONE: what looks for mistakes in its own code is left out.
  target_compile_options(attn_flags INTERFACE
    "$<$<BOOL:$<TARGET_PROPERTY:ATTN_HEAP_ALONE>>:-fno-sanitize=undefined;-fno-sanitize-address-use-after-scope>")
  target_link_options(attn_flags INTERFACE -fsanitize=${ATTN_SANITIZE})
  target_compile_definitions(attn_flags INTERFACE ATTN_DEBUG ATTN_SANITIZED)
  if(ATTN_SANITIZE MATCHES "thread") # libgomp is not instrumented: std::thread stands in for it
    target_compile_definitions(attn_flags INTERFACE ATTN_STD_THREADS)
  endif()
endif()
if(NOT ATTN_SANITIZE MATCHES "thread" AND NOT ATTN_FUZZ) # readers start no threads
  find_package(OpenMP REQUIRED COMPONENTS CXX)
  target_link_libraries(attn_flags INTERFACE OpenMP::OpenMP_CXX)
endif()
find_package(Threads REQUIRED)
target_link_libraries(attn_flags INTERFACE Threads::Threads)
