! Coarrays: what OpenCoarrays makes of one-sided communication, collectives, events and locks.
program coarrays
  use, intrinsic :: iso_fortran_env, only: event_type, lock_type, atomic_int_kind
  implicit none
  integer :: square[*], total, i, me, images
  real(8) :: field(0:9)[*], column(4)
  integer :: shared(4, 4)[*], counter[*]
  integer(atomic_int_kind) :: votes[*], seen
  type(event_type) :: ready[*]
  type(lock_type) :: guard[*]
  me = this_image()
  images = num_images()
  square = me**2
  field = me
  shared = me
  counter = 0
  call atomic_define(votes, 0)
  sync all
  total = 0
  do i = 1, images
    total = total + square[i]
  end do
  call expect(total == images * (images + 1) * (2 * images + 1) / 6, 'gets')
  ! The next image's last element, a strided row of the first, and an event for the next one.
  field(9)[mod(me, images) + 1] = -me
  event post (ready[mod(me, images) + 1])
  event wait (ready)
  call expect(field(9) == -(modulo(me - 2, images) + 1), 'put and event')
  if (me <= 4) shared(me, :)[1] = [(10 * me + i, i = 1, 4)]
  sync all
  if (images >= 2) then
    column = shared(2, :)[1]
    call expect(all(column == [21, 22, 23, 24]), 'strided')
  end if
  lock (guard[1])
  counter[1] = counter[1] + me
  unlock (guard[1])
  call atomic_add(votes[1], 1)
  sync all
  call expect(counter[1] == images * (images + 1) / 2, 'lock')
  call atomic_ref(seen, votes[1])
  call expect(seen == images, 'atomic')
  call co_sum(square)
  call expect(square == total, 'co_sum')
  i = me
  call co_broadcast(i, images)
  call expect(i == images, 'co_broadcast')
  call co_max(me)
  call expect(me == images, 'co_max')
  print '(a,i0)', 'done ', this_image() - 1
contains
  subroutine expect(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    if (holds) return
    print '(a,i0,2a)', 'image ', this_image(), ': ', what
    error stop 3
  end subroutine
end program
