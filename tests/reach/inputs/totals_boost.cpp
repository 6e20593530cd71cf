// Boost.MPI: serialized objects, collectives, nonblocking messages, groups, a skeleton and its content.
#include <boost/mpi.hpp>
#include <boost/mpi/skeleton_and_content.hpp>
#include <boost/serialization/list.hpp>
#include <boost/serialization/map.hpp>
#include <boost/serialization/string.hpp>
#include <boost/serialization/vector.hpp>
#include <functional>
#include <iostream>
#include <list>
#include <map>

namespace mpi = boost::mpi;

int main(int argc, char **argv) {
    mpi::environment environment(argc, argv);
    mpi::communicator world;
    const int rank = world.rank(), size = world.size();
    std::map<std::string, std::vector<int>> object{{"rank", {rank, rank * rank}}, {std::string(rank, 'x'), {}}}, other;
    mpi::request requests[2];
    requests[0] = world.isend((rank + 1) % size, 3, object);
    requests[1] = world.irecv((rank + size - 1) % size, 3, other);
    mpi::wait_all(requests, requests + 2);
    std::vector<std::string> names;
    mpi::all_gather(world, std::string(rank + 1, 'a' + rank), names);
    double sum = mpi::all_reduce(world, rank + 0.25, std::plus<double>());
    std::string least = mpi::all_reduce(world, std::string(1, 'z' - rank), mpi::minimum<std::string>());
    mpi::communicator half = world.split(rank % 2);
    int product = mpi::scan(half, rank + 1, std::multiplies<int>());
    std::list<int> list(5, rank == 0 ? 0 : -1);
    mpi::broadcast(world, mpi::skeleton(list), 0);
    mpi::content content = mpi::get_content(list);
    if (rank == 0)
        std::fill(list.begin(), list.end(), 42);
    mpi::broadcast(world, content, 0);
    for (int turn = 0; turn < size; turn++) {
        world.barrier();
        if (turn != rank)
            continue;
        std::cout << "values " << rank << ' ' << other["rank"][1] << ' ' << sum << ' ' << least << ' ' << product << ' '
                  << list.back();
        for (const std::string &name : names)
            std::cout << ' ' << name;
        std::cout << std::endl;
    }
    return 0;
}
