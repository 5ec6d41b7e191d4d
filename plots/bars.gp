# How shares of a call's time look: a bar a row, a segment a kernel or copy, their names below in the segment's colour; light grey:
# nothing ran. `kbench profile` writes NAME.gp: first the figure's own values, then this text. Needs gnuplot 5.0.
#
# Values: width, height, figure (file name); objects and labels as they stand above.

set terminal svg noenhanced size width, height font 'sans-serif,16' background rgb 'white'
set output figure

unset border
unset tics
unset key
set margins 0, 0, 0, 0
set xrange [0:1]
set yrange [0:1]
plot NaN notitle
