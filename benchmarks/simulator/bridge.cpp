// Runs kernels on GPGPU-Sim for benchmarks/simulator/process.py, which compiles this file against a build of the
// simulator and talks to it through pipes: lines of text, followed by bytes where a line gives their number.
//
//   load FILE ENTRY REGISTERS SHARED       read an entry from a PTX file; replies with the number of its parameters
//   write ADDRESS BYTES                    copy to device memory; no reply
//   read ADDRESS BYTES                     copy from device memory; replies with the bytes
//   launch ENTRY GRID BLOCK PARAMETERS     run a kernel with one 8-byte word per parameter; replies with the numbers of
//                                          cycles and of thread instructions
//
// The simulator prints to standard output, so replies use a copy of it, and the original is redirected to a file.

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <iostream>
#include <list>
#include <map>
#include <string>
#include <vector>

#include "gpgpu_context.h"

gpgpu_context *GPGPU_Context();

static gpgpu_context *context;
static gpgpu_sim *gpu;
static CUctx_st *device;
static FILE *replies;

static void start() {
  context = GPGPU_Context();
  gpu = context->gpgpu_ptx_sim_init_perf();
  cudaDeviceProp *properties = (cudaDeviceProp *)calloc(1, sizeof(cudaDeviceProp));
  properties->major = gpu->compute_capability_major();
  properties->minor = gpu->compute_capability_minor();
  properties->warpSize = gpu->wrp_size();
  properties->multiProcessorCount = gpu->get_config().num_shader();
  gpu->set_prop(properties);
  // These two keep the simulator from starting a thread of its own.
  context->the_gpgpusim->the_cude_device = new _cuda_device_id(gpu);
  context->the_gpgpusim->the_context = new CUctx_st(context->the_gpgpusim->the_cude_device);
  device = context->the_gpgpusim->the_context;
}

static std::map<std::string, function_info *> entries;

static void load() {
  static unsigned files = 0;
  std::string file, entry;
  gpgpu_ptx_sim_info info = gpgpu_ptx_sim_info();
  std::cin >> file >> entry >> info.regs >> info.smem;
  symbol_table *symbols = context->gpgpu_ptx_sim_load_ptx_from_filename(file.c_str());
  device->add_binary(symbols, ++files);
  const char *key = strdup(entry.c_str());
  device->register_function(files, key, key);
  function_info *function = device->get_kernel(key);
  if (function == NULL) {
    fprintf(replies, "-1\n");
    return;
  }
  device->add_ptxinfo(key, info);
  entries[entry] = function;
  function->do_pdom();
  function->set_pdom();
  fprintf(replies, "%u\n", function->num_args());
}

static void launch() {
  std::string entry;
  unsigned grid, block, count;
  std::cin >> entry >> grid >> block >> count;
  std::cin.get();
  std::vector<uint64_t> words(count);
  std::cin.read((char *)words.data(), 8 * count);
  function_info *function = entries.at(entry);
  kernel_info_t *kernel = new kernel_info_t(dim3(grid), dim3(block), function, 0ULL);
  for (unsigned i = 0; i < count; i++) {
    std::pair<size_t, unsigned> place = function->get_param_config(i);
    gpgpu_ptx_sim_arg argument(&words[i], place.first, place.second);
    function->add_param_data(i, &argument);
  }
  function->finalize(kernel->get_param_memory());
  gpu->set_cache_config(kernel->name());
  gpu->init();
  gpu->launch(kernel);
  while (gpu->active()) {
    gpu->cycle();
    gpu->deadlock_check();
  }
  while (gpu->finished_kernel()) {
  }
  fprintf(replies, "%llu %llu\n", gpu->gpu_sim_cycle, gpu->gpu_sim_insn);
  gpu->update_stats();
  delete kernel;
}

static void write_memory() {
  uint64_t address;
  size_t size;
  std::cin >> address >> size;
  std::cin.get();
  std::vector<char> bytes(size);
  std::cin.read(bytes.data(), size);
  gpu->get_global_memory()->write(address, size, bytes.data(), NULL, NULL);
  gpu->perf_memcpy_to_gpu(address, size);
}

static void read_memory() {
  uint64_t address;
  size_t size;
  std::cin >> address >> size;
  std::vector<char> bytes(size);
  gpu->get_global_memory()->read(address, size, bytes.data());
  fwrite(bytes.data(), 1, size, replies);
}

int main(int count, char **arguments) {
  std::ios::sync_with_stdio(false);
  replies = fdopen(dup(1), "w");
  int log = open(count > 1 ? arguments[1] : "/dev/null", O_WRONLY | O_CREAT | O_APPEND, 0666);
  if (log < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0) return 1;
  start();
  fprintf(replies, "ready\n");
  fflush(replies);
  std::string command;
  while (std::cin >> command) {
    if (command == "load") load();
    else if (command == "write") write_memory();
    else if (command == "read") read_memory();
    else if (command == "launch") launch();
    else return 2;
    fflush(stdout);
    fflush(replies);
  }
  fflush(stdout);
  _exit(0);  // The simulator's destructors wait for a thread that was never started.
}
